package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// Fixture is the world that every runner reads; the Rust side writes it.
type Fixture struct {
	Resources []Resource `json:"resources"`
	Claims    []Claim    `json:"claims"`
}

// Resource is one database that can be had, or is held already.
type Resource struct {
	Name    string `json:"name"`
	Class   string `json:"class"`
	Engine  string `json:"engine"`
	Version string `json:"version"`
	Storage int64  `json:"storage"`
	Bound   bool   `json:"bound"`
}

// Claim requests a class, an engine, versions from one to below another, and storage.
type Claim struct {
	Name     string   `json:"name"`
	Class    string   `json:"class"`
	Engine   string   `json:"engine"`
	From     string   `json:"from"`
	Below    string   `json:"below"`
	Versions []string `json:"versions"`
	Storage  int64    `json:"storage"`
}

func read(path string) (*Fixture, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fixture := &Fixture{}
	if err := json.Unmarshal(text, fixture); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return fixture, nil
}
