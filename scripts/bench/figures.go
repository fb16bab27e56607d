package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A series is what several rounds measured of one thing.
type series []float64

func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	t := slices.Sorted(slices.Values(s))
	if n := len(t); n%2 == 0 {
		return (t[n/2-1] + t[n/2]) / 2
	}
	return t[len(t)/2]
}

// String is the median with the lowest and the highest.
func (s series) String() string {
	switch len(s) {
	case 0:
		return "-"
	case 1:
		return figure(s[0])
	}
	return fmt.Sprintf("%s (%s-%s)", figure(s.median()), figure(slices.Min(s)), figure(slices.Max(s)))
}

// figure writes three digits of what is small, and all of what is large.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// times are how long each of many calls took.
type times []time.Duration

// at is the time below which the share p of them lie, in milliseconds.
func (t times) at(p float64) float64 {
	if len(t) == 0 {
		return 0
	}
	slices.Sort(t)
	return millis(t[min(len(t)-1, int(p*float64(len(t))))])
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A table prints rows under heads, in columns that are a Markdown table as well.
type table struct{ w *tabwriter.Writer }

func newTable(heads ...string) table {
	t := table{tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)}
	t.row(heads...)
	rule := make([]string, len(heads))
	for i := range rule {
		rule[i] = "---"
	}
	t.row(rule...)
	return t
}

func (t table) row(cells ...string) {
	fmt.Fprintf(t.w, "| %s\t|\n", strings.Join(cells, "\t| "))
}

func (t table) end() { _ = t.w.Flush() }
