package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const defaultPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// program finds what to execute: Argv[0], or where PATH of the child's own
// environment has it.
func (s Spec) program() (string, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return "", &StartError{Reason: "the command is empty"}
	}
	name := s.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil // a relative one counts from Dir, where the child executes it
	}
	path := defaultPath
	for _, kv := range s.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v // the last one holds, as in os/exec
		}
	}
	var unfit string
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		file := filepath.Join(dir, name)
		if !filepath.IsAbs(file) {
			file = "./" + file
		}
		info, err := os.Stat(s.inDir(file))
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			unfit = file
		default:
			return file, nil
		}
	}
	if unfit != "" {
		return "", &StartError{Errno: syscall.EACCES, Path: unfit, Reason: unfit + ": not executable"}
	}
	return "", &StartError{Errno: syscall.ENOENT, Path: name, Reason: name + ": not found in PATH", Folders: path}
}

// inDir is file as the child sees it.
func (s Spec) inDir(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(s.Dir, file)
}

// explain says for people what errno means for this command. It looks at the
// files again, for the kernel says "no such file" of a missing program, a
// missing interpreter and a missing directory alike.
func explain(s Spec, path string, errno syscall.Errno, cause error) *StartError {
	e := &StartError{Errno: errno, Path: path}
	switch errno {
	case 0:
		e.Reason = cause.Error()
	case syscall.EMFILE:
		e.Reason = "the supervisor has no file descriptor left; raise its limit (ulimit -n)"
	case syscall.ENFILE:
		e.Reason = "the machine has no file descriptor left"
	case syscall.EAGAIN:
		e.Reason = path + ": no more processes: the user's limit (ulimit -u) or a limit of pids is reached"
	case syscall.ENOMEM:
		e.Reason = path + ": out of memory"
	case syscall.E2BIG:
		e.Reason = path + ": arguments and environment are too long"
	case syscall.ETXTBSY:
		e.Reason = path + ": somebody has it open for writing"
	case syscall.ENOEXEC:
		e.Reason = path + ": no program: its first line does not name an interpreter (#!…), or it is for another machine"
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES, syscall.ELOOP:
		if dir := unfitDir(s.Dir); dir != "" {
			e.Path, e.Reason = s.Dir, dir
			break
		}
		e.Reason = unfitProgram(s.inDir(path), errno)
	case syscall.EPERM:
		e.Reason = path + ": not permitted" + onlyRoot(s)
	default:
		e.Reason = path + ": " + cause.Error()
	}
	return e
}

// onlyRoot is what of s only root may have, with a semicolon; "" = nothing.
func onlyRoot(s Spec) string {
	var own syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own)
	switch {
	case err == nil && s.NoFile > own.Max:
		return fmt.Sprintf("; its limit of open files is to be %d, and more than %d may only be set by root, up to fs.nr_open", s.NoFile, own.Max)
	case s.Credential != nil:
		return "; only root may run a program as another user"
	}
	return ""
}

// unfitDir says what is wrong with the working directory, "" = nothing that the
// supervisor sees.
func unfitDir(dir string) string {
	if dir == "" {
		return ""
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return dir + ": no such directory to run in"
	case err != nil:
		return dir + ": cannot be entered: " + reason(err)
	case !info.IsDir():
		return dir + ": is no directory to run in"
	}
	return ""
}

func unfitProgram(path string, errno syscall.Errno) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + ": no such file"
	case err != nil:
		return path + ": " + reason(err)
	case info.IsDir():
		return path + ": is a directory"
	case errno == syscall.ENOENT:
		interpreter, crlf := interpreterOf(path)
		switch {
		case crlf:
			return path + ": its first line ends in a carriage return (Windows line ends), so its interpreter is not found"
		case interpreter != "":
			return path + ": its interpreter " + interpreter + " does not exist"
		}
		return path + ": a file that it needs to start (its loader) does not exist"
	case info.Mode()&0o111 == 0:
		return path + ": not executable"
	}
	if interpreter, _ := interpreterOf(path); interpreter != "" {
		if info, err := os.Stat(interpreter); err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
			return path + ": its interpreter " + interpreter + " is not executable"
		}
	}
	return path + ": permission denied, for the file, a directory above it, or the directory to run in"
}

// interpreterOf reads the line #!interpreter of a script.
func interpreterOf(path string) (interpreter string, crlf bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, _ := f.Read(buf)
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "", false
	}
	field := strings.Fields(rest)
	if len(field) == 0 {
		return "", false
	}
	return field[0], strings.HasSuffix(line, "\r")
}

// reason is err without the operation and path that are said already.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
