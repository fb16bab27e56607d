package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// order refuses `after` that names an actor that there is not, and circles of
// it, in which no actor could be the first.
func (w *walk) order(actors []declared, all []settings) {
	at := make(map[string]int, len(actors))
	known := make([]string, len(actors))
	for i, d := range actors {
		at[d.name.Value], known[i] = i, d.name.Value
	}
	next := make([][]edge, len(actors))
	judged := make(map[*yaml.Node]bool) // an entry of defaults is met once for each actor
	for i := range actors {
		s := all[i]["after"]
		for j, item := range s.items {
			name := s.value.([]string)[j]
			if to, ok := at[name]; ok {
				next[i] = append(next[i], edge{to, item})
				continue
			}
			if judged[item] {
				continue
			}
			judged[item] = true
			if meant := Closest(name, known); meant != "" {
				w.report(item, "after names the unknown actor %s, did you mean %q?", short(name), meant)
				continue
			}
			w.report(item, "after names the unknown actor %s, allowed: %s", short(name), some(known))
		}
	}
	for _, circle := range circles(next) {
		var path []string
		for _, i := range circle {
			path = append(path, known[i])
		}
		from, to := circle[0], circle[1%len(circle)]
		step := slices.IndexFunc(next[from], func(e edge) bool { return e.to == to })
		w.report(next[from][step].at, "after goes in a circle: %s, allowed: an order in which one can start first",
			strings.Join(append(path, path[0]), " after "))
	}
}

// An edge says that an actor comes after another, and where the file says so.
type edge struct {
	to int
	at *yaml.Node
}

// circles are circles of next, each beginning with its lowest index: at least
// one for every set of actors that wait for each other, and none of which every
// actor is in another already.
func circles(next [][]edge) [][]int {
	var found [][]int
	place := make([]int, len(next)) // on the path: its place there, from 1; done: -1
	var path []int
	told := make([]bool, len(next)) // is in a circle that was found
	untold := func(i int) bool { return !told[i] }
	var visit func(int)
	visit = func(i int) {
		path = append(path, i)
		place[i] = len(path)
		for _, e := range next[i] {
			switch p := place[e.to]; {
			case p > 0 && slices.ContainsFunc(path[p-1:], untold):
				found = append(found, turned(path[p-1:]))
				for _, j := range path[p-1:] {
					told[j] = true
				}
			case p == 0:
				visit(e.to)
			}
		}
		path = path[:len(path)-1]
		place[i] = -1
	}
	for i := range next {
		if place[i] == 0 {
			visit(i)
		}
	}
	return found
}

// turned is a copy of circle that begins with its lowest element.
func turned(circle []int) []int {
	first := slices.Index(circle, slices.Min(circle))
	return slices.Concat(circle[first:], circle[:first])
}

// some is the names for a message, cut where there are many.
func some(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " …"
	}
	return strings.Join(names, ", ")
}
