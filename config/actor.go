package config

import (
	"maps"
	"slices"
	"strings"
)

// actor makes an Actor of what it declares itself, of defaults and of what is
// built in, and judges it as a whole. The settings that came together are
// returned too, for their places in the file.
func (w *walk) actor(d declared, defaults settings) (Actor, settings) {
	a := Actor{Name: d.name.Value, Umask: -1}
	if d.own == nil {
		return a, nil
	}
	mode := modeOf(d.own, defaults)
	w.misplaced(actorKeys, "", mode, d.own)
	all := make(settings)
	merge(actorKeys, "", mode, d.own, defaults, all)
	oneReadiness(d.own, all)
	withoutItself(a.Name, d.own, all)

	if _, given := all["command"]; !given {
		w.report(d.name, "actor %s has no command, allowed: %s", a.Name, commandLine{}.allowed())
	}
	w.oneMethod(all)
	if mode == Daemon {
		w.ownWatchdog(d.own, all)
	}
	assign(&a, actorKeys, "", mode, all)
	if mode == Task {
		// The supervisor renews a task's claim itself while the child lives.
		claim := find(actorKeys, "claim")
		assign(&a, claim.keys, "claim.", Task, nil)
	}
	w.grows("backoff", a.Backoff, all)
	w.grows("retry", a.Retry.Backoff, all)
	a.Cwd = w.absolute(a.Cwd)
	w.addEnvFile(&a, all["env_file"])
	return a, all
}

// modeOf is the mode of an actor, "" where it was refused.
func modeOf(own, defaults settings) Mode {
	for _, from := range []settings{own, defaults} {
		if s, given := from["mode"]; given {
			mode, _ := s.value.(Mode)
			return mode
		}
	}
	return Task
}

// misplaced refuses keys of the actor's own that make no sense in its mode.
// Those that come from defaults are meant for others, and are left out.
func (w *walk) misplaced(keys []*key, prefix string, mode Mode, own settings) {
	for _, k := range keys {
		path := prefix + k.name
		s, given := own[path]
		switch {
		case !given || s.key.Value != k.name:
		case !k.fits(mode):
			w.report(s.key, "%s makes no sense in mode %s, allowed: in mode %s", path, mode, either(modeNames(k.modes)))
		default:
			w.misplaced(k.keys, path+".", mode, own)
		}
	}
}

func modeNames(modes []Mode) []string {
	list := make([]string, len(modes))
	for i, m := range modes {
		list[i] = string(m)
	}
	return list
}

// merge lays own over defaults, mappings key by key, into all, as far as they
// fit mode.
func merge(keys []*key, prefix string, mode Mode, own, defaults, all settings) {
	for _, k := range keys {
		if !k.fits(mode) {
			continue
		}
		path := prefix + k.name
		mine, given := own[path]
		theirs, inherited := defaults[path]
		switch {
		case given && inherited && k.name == "env" && !mine.bad && !theirs.bad:
			env := maps.Clone(theirs.value.(map[string]string))
			maps.Copy(env, mine.value.(map[string]string))
			mine.value = env
			all[path] = mine
		case given:
			all[path] = mine
		case inherited:
			all[path] = theirs
		}
		merge(k.keys, path+".", mode, own, defaults, all)
	}
}

var readyMethods = []string{"ready.notify", "ready.exec", "ready.tcp", "ready.http"}

// oneReadiness lets an actor's own way of being ready replace that of defaults,
// where merging key by key would leave two.
func oneReadiness(own, all settings) {
	has := func(path string) bool { _, given := own[path]; return given }
	if !slices.ContainsFunc(readyMethods, has) {
		return
	}
	for _, path := range readyMethods {
		if !has(path) {
			delete(all, path)
		}
	}
}

// ownWatchdog refuses a watchdog for a daemon that cannot show a sign of life: it
// has no channel, and no socket for sd_notify. One that comes from defaults is meant
// for workers, and left out.
func (w *walk) ownWatchdog(own, all settings) {
	s, mine := own["watchdog"]
	if _, notifies := all["ready.notify"]; mine && notifies {
		return
	}
	if mine {
		w.report(s.key, "watchdog kills a daemon that cannot show a sign of life, allowed: with ready: {notify: true}, by which it can")
	}
	delete(all, "watchdog")
}

// withoutItself lets `after` in defaults name an actor that they hold for too.
func withoutItself(name string, own, all settings) {
	s, given := all["after"]
	names, _ := s.value.([]string)
	if _, mine := own["after"]; mine || !given || s.bad || !slices.Contains(names, name) {
		return
	}
	var rest []string
	items := s.items
	s.items = nil
	for i, other := range names {
		if other != name {
			rest, s.items = append(rest, other), append(s.items, items[i])
		}
	}
	s.value = rest
	all["after"] = s
}

// oneMethod refuses `ready` with no method or with several.
func (w *walk) oneMethod(all settings) {
	ready, given := all["ready"]
	if !given || ready.bad {
		return
	}
	var has []string
	last := ready
	for _, path := range readyMethods {
		if s, given := all[path]; given {
			has = append(has, strings.TrimPrefix(path, "ready."))
			if last.key == ready.key || s.key.Line > last.key.Line ||
				s.key.Line == last.key.Line && s.key.Column > last.key.Column {
				last = s
			}
		}
	}
	const allowed = "exactly one of notify, exec, tcp and http"
	switch len(has) {
	case 0:
		w.report(ready.key, "ready says not how, allowed: %s", allowed)
	case 1:
	default:
		w.report(last.key, "ready has %s, allowed: %s", strings.Join(has, " and "), allowed)
	}
}

// assign fills a from all, and from the defaults built in where all has
// nothing.
func assign(a *Actor, keys []*key, prefix string, mode Mode, all settings) {
	for _, k := range keys {
		if !k.fits(mode) {
			continue
		}
		path := prefix + k.name
		s, given := all[path]
		switch {
		case k.keys != nil && (given || k.present == nil):
			assign(a, k.keys, path+".", mode, all)
		case k.keys != nil:
		case given && !s.bad:
			k.field.set(a, s.value)
		case k.def != "":
			k.field.set(a, k.standard())
		}
	}
}

// grows refuses a backoff whose first wait is longer than its longest.
func (w *walk) grows(path string, b Backoff, all settings) {
	initial, hasInitial := all[path+".initial"]
	most, hasMax := all[path+".max"]
	if b.Initial <= b.Max || initial.bad || most.bad {
		return
	}
	at := initial.at
	if hasMax {
		at = most.at
	}
	if hasInitial && hasMax && (initial.at.Line > most.at.Line ||
		initial.at.Line == most.at.Line && initial.at.Column > most.at.Column) {
		at = initial.at
	}
	w.report(at, "%s.max %s is shorter than %s.initial %s, allowed: at least as long", path,
		FormatDuration(b.Max), path, FormatDuration(b.Initial))
}

// addEnvFile puts what the env_file at s says under a's env.
func (w *walk) addEnvFile(a *Actor, s setting) {
	if s.at == nil || s.bad {
		return
	}
	a.EnvFile = w.absolute(a.EnvFile)
	env := maps.Clone(w.envFile(s.value.(string), s.at))
	if env == nil {
		return
	}
	maps.Copy(env, a.Env)
	a.Env = env
}
