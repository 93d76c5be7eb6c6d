// Runs one peer's own matching code over a fixture and prints what it chose and how long it took, as JSON.
// Nothing here matches anything itself: it only puts the fixture into the peer's words.
//
//	peers (volumes|devices) FIXTURE DECISIONS
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// matcher gives the name of the resource that a peer chooses for a claim, or nothing.
type matcher func(claim Claim) (string, error)

// Result is what one run prints.
type Result struct {
	Nanoseconds int64     `json:"nanoseconds"`
	Decisions   int       `json:"decisions"`
	MemoryKiB   int64     `json:"memoryKiB"`
	Choices     []*string `json:"choices"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: peers (volumes|devices) FIXTURE DECISIONS")
	}
	fixture, err := read(args[1])
	if err != nil {
		return err
	}
	decisions, err := strconv.Atoi(args[2])
	if err != nil || decisions < 1 || decisions > len(fixture.Claims) {
		return fmt.Errorf("DECISIONS is %q: give 1 to %d", args[2], len(fixture.Claims))
	}
	var match matcher
	switch args[0] {
	case "volumes":
		match, err = volumes(fixture)
	case "devices":
		match, err = devices(fixture)
	default:
		err = fmt.Errorf("there is no peer %q: volumes or devices", args[0])
	}
	if err != nil {
		return err
	}
	result, err := measure(match, fixture.Claims[:decisions])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// measure decides about each claim once unmeasured, so that caches are warm, and once measured.
func measure(match matcher, claims []Claim) (Result, error) {
	result := Result{Decisions: len(claims)}
	if _, err := match(claims[0]); err != nil {
		return result, err
	}
	runtime.GC()
	for _, claim := range claims {
		start := time.Now()
		name, err := match(claim)
		result.Nanoseconds += time.Since(start).Nanoseconds()
		if err != nil {
			return result, fmt.Errorf("claim %s: %w", claim.Name, err)
		}
		if name == "" {
			result.Choices = append(result.Choices, nil)
		} else {
			result.Choices = append(result.Choices, &name)
		}
	}
	result.MemoryKiB = peakMemory()
	return result, nil
}

func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(status), "\n") {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib
		}
	}
	return 0
}
