package config

import (
	"errors"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// sizePattern is how a size is written, here and in the JSON Schema.
const sizePattern = `^[0-9]+(B|KiB|MiB|GiB)$`

var sizeForm = regexp.MustCompile(`^([0-9]+)(B|KiB|MiB|GiB)$`)

// The units of sizes, powers of 1024.
const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// ParseSize reads a number of bytes as actors.yaml and the flags write it: a
// whole number and B, KiB, MiB or GiB. KB, MB and GB are refused, because they
// mean 1000 to some and 1024 to others. The error completes a sentence that
// begins with the text ("has no unit").
func ParseSize(text string) (int64, error) {
	form := sizeForm.FindStringSubmatch(text)
	if form == nil {
		return 0, sizeMistake(text)
	}
	n, err := strconv.ParseUint(form[1], 10, 63)
	over, size := bits.Mul64(n, unitOf(form[2]))
	if err != nil || over != 0 || size > 1<<63-1 {
		return 0, errors.New("is too large")
	}
	return int64(size), nil
}

func unitOf(name string) uint64 {
	switch name {
	case "KiB":
		return kib
	case "MiB":
		return mib
	case "GiB":
		return gib
	}
	return 1
}

// sizeMistake says what is wrong with a text that is no size.
func sizeMistake(text string) error {
	number := strings.TrimRight(text, "BbKkMmGgi ")
	unit := strings.TrimSpace(text[len(number):])
	switch {
	case strings.HasPrefix(text, "-"):
		return errors.New("is negative")
	case !bareNumber.MatchString(number):
		return errors.New("is no size")
	case unit == "":
		return errors.New("has no unit")
	case strings.Contains(number, "."):
		return errors.New("is no whole number")
	case strings.ContainsAny(unit[:1], "KkMmGg"):
		meant := strings.ToUpper(unit[:1]) + "iB"
		return errors.New("has the unit " + unit + ", did you mean " + number + meant + "?")
	}
	return errors.New("is no size")
}

// FormatSize writes n, which is not negative, in the largest unit that leaves
// it a whole number; [ParseSize] reads the same again.
func FormatSize(n int64) string {
	switch {
	case n == 0:
	case n%gib == 0:
		return strconv.FormatInt(n/gib, 10) + "GiB"
	case n%mib == 0:
		return strconv.FormatInt(n/mib, 10) + "MiB"
	case n%kib == 0:
		return strconv.FormatInt(n/kib, 10) + "KiB"
	}
	return strconv.FormatInt(n, 10) + "B"
}
