package supervisor

// MakeFolder is makeFolder, for a test of what its user does to it meanwhile.
var MakeFolder = makeFolder

// GoOn has each slot go on as after an upgrade, once whatever it does now has begun.
func (sup *Supervisor) GoOn() {
	for _, a := range sup.actors() {
		for _, s := range a.all() {
			s.call(s.goOn)
		}
	}
}
