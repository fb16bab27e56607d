package config

import (
	"slices"
	"strings"
)

// Closest is the candidate that word is most likely a slip of, or "": at most
// one slip in a short word and two in a longer one, where a slip is a letter
// too many, missing, another, or two that changed places; capital letters are
// none. Of equally close ones the first counts.
func Closest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bestSlips := "", 3
	for _, c := range candidates {
		if n := slips(word, c); n < bestSlips && (n < 2 || len(c) > 4) {
			best, bestSlips = c, n
		}
	}
	return best
}

// slips is the edit distance of a and b with transpositions (optimal string
// alignment), or 3 where it is certainly more than two, or where they are
// longer than any name can be.
func slips(a, b string) int {
	const longest = 63
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 || len(a) > longest || len(b) > longest {
		return 3
	}
	var rows [3][longest + 1]int // the one being filled, the one above it, the one above that
	row, previous, before := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, previous, before = before, row, previous
		row[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			changed := previous[j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			row[j] = min(previous[j]+1, row[j-1]+1, changed)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			best = min(best, row[j])
		}
		if best > 3 {
			return 3 // a later row is at most one below its two before
		}
	}
	return min(row[len(b)], 3)
}

// suggest is what the unknown key word, met where keys are allowed, may have
// been meant as; nil where nothing comes near. First comes what other
// supervisors call the same thing, then a slip, then a key of that very name
// one level further down.
func suggest(word string, keys []*key) []string {
	var names, inside []string
	for _, k := range keys {
		if slices.Contains(k.aka, strings.ToLower(word)) {
			return []string{k.name}
		}
		names = append(names, k.name)
		if k.name == "actors" {
			continue // its keys are names
		}
		for _, sub := range k.keys {
			if sub.name == word {
				inside = append(inside, k.name+"."+sub.name)
			}
		}
	}
	if c := Closest(word, names); c != "" {
		return []string{c}
	}
	return inside
}
