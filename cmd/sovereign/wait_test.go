package main

import "github.com/fsnotify/fsnotify"

func watchFolder(dir string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return w, w.Add(dir)
}
