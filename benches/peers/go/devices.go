package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

const (
	driver = "conductor.io"
	pool   = "databases"
	// The API server takes no more devices in one slice.
	perSlice = 128
)

// classes answers the allocator's questions about device classes.
type classes map[string]*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	all := make([]*resourceapi.DeviceClass, 0, len(c))
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, found := c[name]; found {
		return class, nil
	}
	return nil, fmt.Errorf("there is no class %s", name)
}

// devices is the allocator of dynamic resource allocation as the scheduler uses it: one allocator per decision, over
// every slice; expressions are compiled once and kept.
func devices(fixture *Fixture) (matcher, error) {
	ctx := context.Background()
	slices, allocated, known := asSlices(fixture)
	compiled := cel.NewCache(1024, cel.Features{})
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	return func(claim Claim) (string, error) {
		allocator, err := structured.NewAllocator(ctx, structured.Features{}, allocated, known, slices, compiled)
		if err != nil {
			return "", err
		}
		results, err := allocator.Allocate(ctx, node, []*resourceapi.ResourceClaim{asDeviceClaim(claim)})
		if err != nil || len(results) == 0 || len(results[0].Devices.Results) == 0 {
			return "", err
		}
		return results[0].Devices.Results[0].Device, nil
	}, nil
}

func asSlices(fixture *Fixture) ([]*resourceapi.ResourceSlice, structured.AllocatedState, classes) {
	known := classes{}
	allocated := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	count := (len(fixture.Resources) + perSlice - 1) / perSlice
	slices := make([]*resourceapi.ResourceSlice, 0, count)
	for from := 0; from < len(fixture.Resources); from += perSlice {
		slice := &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("slice-%05d", len(slices))},
			Spec: resourceapi.ResourceSliceSpec{
				Driver:   driver,
				Pool:     resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: int64(count)},
				AllNodes: ptr.To(true),
			},
		}
		for _, each := range fixture.Resources[from:min(from+perSlice, len(fixture.Resources))] {
			slice.Spec.Devices = append(slice.Spec.Devices, asDevice(each))
			known[each.Class] = asClass(each.Class)
			if each.Bound {
				allocated.AllocatedDevices.Insert(structured.MakeDeviceID(driver, pool, each.Name))
			}
		}
		slices = append(slices, slice)
	}
	return slices, allocated, known
}

func asDevice(each Resource) resourceapi.Device {
	text := func(value string) resourceapi.DeviceAttribute {
		return resourceapi.DeviceAttribute{StringValue: &value}
	}
	return resourceapi.Device{
		Name: each.Name,
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"class":   text(each.Class),
			"engine":  text(each.Engine),
			"version": {VersionValue: ptr.To(each.Version + ".0")},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"storage": {Value: *resource.NewQuantity(each.Storage, resource.BinarySI)},
		},
	}
}

func asClass(name string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.DeviceClassSpec{
			Selectors: selectors(fmt.Sprintf(`device.attributes[%q].class == %q`, driver, name)),
		},
	}
}

func selectors(expression string) []resourceapi.DeviceSelector {
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
}

func asDeviceClaim(claim Claim) *resourceapi.ResourceClaim {
	expression := fmt.Sprintf(
		`device.attributes[%[1]q].engine == %[2]q`+
			` && device.attributes[%[1]q].version.compareTo(semver(%[3]q)) >= 0`+
			` && device.attributes[%[1]q].version.compareTo(semver(%[4]q)) < 0`+
			` && device.capacity[%[1]q].storage.compareTo(quantity(%[5]q)) >= 0`,
		driver, claim.Engine, claim.From+".0", claim.Below+".0", fmt.Sprint(claim.Storage))
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: "team", UID: "claim"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{
				Name: "database",
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: claim.Class,
					Selectors:       selectors(expression),
					AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
					Count:           1,
				},
			}},
		}},
	}
}
