package supervisor

// MakeFolder is makeFolder, for a test of what its user does to it meanwhile.
var MakeFolder = makeFolder
