package config

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// durationPattern is how a duration is written, here and in the JSON Schema:
// Go's way, with whole days in front.
const durationPattern = `^([0-9]+d)?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$`

var (
	durationForm = regexp.MustCompile(durationPattern)
	bareNumber   = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)
)

const day = 24 * time.Hour

// ParseDuration reads a duration as actors.yaml and the flags write it: as
// Go's, with whole days (of 24 hours) in front, such as "100ms", "1h30m", "30d"
// or "1d12h". A sign, a bare number, and whatever does not fit into a
// [time.Duration] are refused; the error completes a sentence that begins with
// the text ("has no unit").
func ParseDuration(text string) (time.Duration, error) {
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, errors.New("is negative")
	case bareNumber.MatchString(text):
		return 0, errors.New("has no unit")
	case text == "" || !durationForm.MatchString(text):
		return 0, errors.New("is no duration")
	}
	var days time.Duration
	rest := text
	if whole, after, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || n > int64((1<<63-1)/day) {
			return 0, errors.New("is too long")
		}
		days, rest = time.Duration(n)*day, after
	}
	if rest == "" {
		return days, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || days+d < 0 {
		return 0, errors.New("is too long")
	}
	return days + d, nil
}

// FormatDuration writes d, which is not negative, so that [ParseDuration]
// reads the same again: in days where it is whole days, else as Go does,
// without zero parts at the end.
func FormatDuration(d time.Duration) string {
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
