package fence

var DecodeLease = decodeLease

func EncodeLease(l Lease) []byte { return l.encode() }
