//go:build race

package main

// demoRace: what is built for a test watches for races, too.
const demoRace = true
