package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
)

const byAccessModes = "accessmodes"

var readWriteOnce = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}

// volumes is the matching path of the persistent volume controller: every volume of the claim's access modes out of
// an indexer, then FindMatchingVolume over all of them. Engine and version become labels and a selector; a range of
// versions is spelled out, because a selector has no order.
func volumes(fixture *Fixture) (matcher, error) {
	modes := func(object any) ([]string, error) {
		return []string{string(object.(*v1.PersistentVolume).Spec.AccessModes[0])}, nil
	}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byAccessModes: modes})
	for _, each := range fixture.Resources {
		if err := index.Add(asVolume(each)); err != nil {
			return nil, err
		}
	}
	return func(claim Claim) (string, error) {
		objects, err := index.Index(byAccessModes, &v1.PersistentVolume{
			Spec: v1.PersistentVolumeSpec{AccessModes: readWriteOnce},
		})
		if err != nil {
			return "", err
		}
		candidates := make([]*v1.PersistentVolume, len(objects))
		for i, object := range objects {
			candidates[i] = object.(*v1.PersistentVolume)
		}
		found, err := volume.FindMatchingVolume(asVolumeClaim(claim), candidates, nil, nil, false, true)
		if err != nil || found == nil {
			return "", err
		}
		return found.Name, nil
	}, nil
}

func asVolume(each Resource) *v1.PersistentVolume {
	pv := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:   each.Name,
			Labels: map[string]string{"engine": each.Engine, "version": each.Version},
		},
		Spec: v1.PersistentVolumeSpec{
			Capacity:         v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(each.Storage, resource.BinarySI)},
			AccessModes:      readWriteOnce,
			StorageClassName: each.Class,
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
	if each.Bound {
		pv.Spec.ClaimRef = &v1.ObjectReference{Namespace: "others", Name: each.Name, UID: "1"}
		pv.Status.Phase = v1.VolumeBound
	}
	return pv
}

func asVolumeClaim(claim Claim) *v1.PersistentVolumeClaim {
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Namespace: "team"},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes:      readWriteOnce,
			StorageClassName: &claim.Class,
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				in("engine", claim.Engine), in("version", claim.Versions...),
			}},
			Resources: v1.VolumeResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(claim.Storage, resource.BinarySI)},
			},
		},
	}
}
