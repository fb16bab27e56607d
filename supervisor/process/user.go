package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// LookupUser resolves a user, by name or number, and a group, "" being the
// user's primary group. env holds HOME, USER, LOGNAME and SHELL of that user,
// for the child's environment. Supplementary groups are those of the user
// database; a number that no user has gets none, and a HOME of "/".
//
// It reads the databases anew at each call.
func LookupUser(name, group string) (c Credential, env []string, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		var unknown user.UnknownUserError
		n, numErr := strconv.ParseUint(name, 10, 32)
		if !errors.As(err, &unknown) || numErr != nil {
			return Credential{}, nil, fmt.Errorf("look up user %q: %w", name, err)
		}
		if u, err = user.LookupId(name); err != nil {
			if group == "" {
				return Credential{}, nil, fmt.Errorf("look up user %q: no such user, and no group is given: %w", name, err)
			}
			u = &user.User{Uid: strconv.FormatUint(n, 10), Username: name, HomeDir: "/"}
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return Credential{}, nil, fmt.Errorf("look up user %q: uid %q: %w", name, u.Uid, err)
	}
	c.UID = uint32(uid)
	gid := u.Gid
	if group != "" {
		if gid, err = lookupGroup(group); err != nil {
			return Credential{}, nil, err
		}
	}
	g, err := strconv.ParseUint(gid, 10, 32)
	if err != nil {
		return Credential{}, nil, fmt.Errorf("look up user %q: gid %q: %w", name, gid, err)
	}
	c.GID = uint32(g)
	if c.Groups, err = supplementary(u, c.GID); err != nil {
		return Credential{}, nil, fmt.Errorf("look up groups of user %q: %w", name, err)
	}
	home := u.HomeDir
	if home == "" {
		home = "/"
	}
	return c, []string{"HOME=" + home, "USER=" + u.Username, "LOGNAME=" + u.Username, "SHELL=" + shellOf(u.Username)}, nil
}

// LookupGroup is the supervisor's own user in another group, and in no further one.
func LookupGroup(group string) (c Credential, err error) {
	gid, err := lookupGroup(group)
	if err != nil {
		return Credential{}, err
	}
	g, err := strconv.ParseUint(gid, 10, 32)
	if err != nil {
		return Credential{}, fmt.Errorf("look up group %q: gid %q: %w", group, gid, err)
	}
	return Credential{UID: uint32(os.Geteuid()), GID: uint32(g), Groups: []uint32{uint32(g)}}, nil
}

// lookupGroup is the number of a group given by name or number. A number need
// not be in the database.
func lookupGroup(group string) (string, error) {
	g, err := user.LookupGroup(group)
	if err == nil {
		return g.Gid, nil
	}
	if _, numErr := strconv.ParseUint(group, 10, 32); numErr == nil {
		return group, nil
	}
	return "", fmt.Errorf("look up group %q: %w", group, err)
}

// supplementary are u's groups as initgroups would set them: those of the
// database and primary.
func supplementary(u *user.User, primary uint32) ([]uint32, error) {
	groups := []uint32{primary}
	if u.Gid == "" {
		return groups, nil
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("gid %q: %w", id, err)
		}
		if uint32(n) != primary {
			groups = append(groups, uint32(n))
		}
	}
	return groups, nil
}

// shellOf is the login shell in /etc/passwd, or /bin/sh for users kept
// elsewhere.
func shellOf(name string) string {
	const fallback = "/bin/sh"
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return fallback
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field := strings.Split(lines.Text(), ":")
		if len(field) >= 7 && field[0] == name && field[6] != "" {
			return field[6]
		}
	}
	return fallback
}
