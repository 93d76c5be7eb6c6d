// An ordinary client-go program, as operators are made of: shared informers for a core kind and for a custom
// resource, a lister, a Lease by leader election, an Event. It prints what it saw, one line each, without ids and
// times, so that two servers can be compared. It knows nothing of Conductor or of tests.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

const namespace = "go-client"

// What informers saw, by informer; compared as a set of last words, because a slow watch may merge events.
type seen struct {
	sync.Mutex
	words map[string]string
}

func (s *seen) say(object, word string) {
	s.Lock()
	defer s.Unlock()
	s.words[object] = word
}

func (s *seen) wait(object, word string) {
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s.Lock()
		now := s.words[object]
		s.Unlock()
		if now == word {
			fmt.Println("seen:", object, word)
			return
		}
	}
	fail("never seen: %s %s", object, word)
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	config.QPS, config.Burst = 200, 200
	typed, err := kubernetes.NewForConfig(config)
	check(err)
	loose, err := dynamic.NewForConfig(config)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	version, err := typed.Discovery().ServerVersion()
	check(err)
	fmt.Println("server:", version.Major+"."+version.Minor)
	_, err = typed.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}, meta.CreateOptions{})
	check(err)
	widgets := mapping(typed)

	saw := &seen{words: map[string]string{}}
	shared := informers.NewSharedInformerFactoryWithOptions(typed, time.Minute, informers.WithNamespace(namespace))
	follow(shared.Core().V1().ConfigMaps().Informer(), "configmap", saw)
	lister := shared.Core().V1().ConfigMaps().Lister()
	others := dynamicinformer.NewFilteredDynamicSharedInformerFactory(loose, time.Minute, namespace, nil)
	follow(others.ForResource(widgets).Informer(), "widget", saw)
	shared.Start(ctx.Done())
	others.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	others.WaitForCacheSync(ctx.Done())
	fmt.Println("informers have synced")

	configMaps(ctx, typed, saw)
	custom(ctx, loose.Resource(widgets).Namespace(namespace), saw)
	listed, err := lister.List(labels.Everything())
	check(err)
	names := []string{}
	for _, one := range listed {
		names = append(names, one.Name)
	}
	sort.Strings(names)
	fmt.Println("lister:", strings.Join(names, " "))
	pages(ctx, typed)
	lead(ctx, typed)
}

// A RESTMapper finds the resource of a kind, as controllers do.
func mapping(client *kubernetes.Clientset) schema.GroupVersionResource {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	found, err := mapper.RESTMapping(schema.GroupKind{Group: "conformance.example.com", Kind: "Widget"})
	check(err)
	fmt.Println("mapped:", found.Resource.Resource, found.Scope.Name())
	return found.Resource
}

func follow(informer cache.SharedIndexInformer, kind string, saw *seen) {
	word := func(object any) (string, string) {
		if gone, late := object.(cache.DeletedFinalStateUnknown); late {
			object = gone.Obj
		}
		one := object.(meta.Object)
		return kind + "/" + one.GetName(), one.GetLabels()["step"]
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { name, step := word(object); saw.say(name, "there "+step) },
		UpdateFunc: func(_, object any) { name, step := word(object); saw.say(name, "there "+step) },
		DeleteFunc: func(object any) { name, _ := word(object); saw.say(name, "gone") },
	})
	check(err)
}

func configMaps(ctx context.Context, client *kubernetes.Clientset, saw *seen) {
	api := client.CoreV1().ConfigMaps(namespace)
	for _, name := range []string{"a", "b", "c"} {
		one := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"step": "1"}}}
		_, err := api.Create(ctx, one, meta.CreateOptions{})
		check(err)
		saw.wait("configmap/"+name, "there 1")
	}
	_, err := api.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "a"}}, meta.CreateOptions{})
	fmt.Println("made twice:", errors.IsAlreadyExists(err))
	check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		one, err := api.Get(ctx, "a", meta.GetOptions{})
		check(err)
		one.Labels["step"] = "2"
		_, err = api.Update(ctx, one, meta.UpdateOptions{})
		return err
	}))
	saw.wait("configmap/a", "there 2")
	_, err = api.Patch(ctx, "b", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"step":"3"}}}`), meta.PatchOptions{})
	check(err)
	saw.wait("configmap/b", "there 3")
	old, err := api.Get(ctx, "b", meta.GetOptions{})
	check(err)
	old.ResourceVersion = "1"
	_, err = api.Update(ctx, old, meta.UpdateOptions{})
	fmt.Println("old revision:", errors.IsConflict(err))
	check(api.Delete(ctx, "c", meta.DeleteOptions{}))
	saw.wait("configmap/c", "gone")
	_, err = api.Get(ctx, "c", meta.GetOptions{})
	fmt.Println("not there:", errors.IsNotFound(err))
}

func custom(ctx context.Context, api dynamic.ResourceInterface, saw *seen) {
	one := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "conformance.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "labels": map[string]any{"step": "1"}},
		"spec":     map[string]any{"size": int64(3)},
	}}
	made, err := api.Create(ctx, one, meta.CreateOptions{})
	check(err)
	colour, _, _ := unstructured.NestedString(made.Object, "spec", "colour")
	fmt.Println("default:", colour)
	saw.wait("widget/w", "there 1")
	check(unstructured.SetNestedField(made.Object, "Up", "status", "phase"))
	made, err = api.UpdateStatus(ctx, made, meta.UpdateOptions{})
	check(err)
	fmt.Println("status:", made.Object["status"], "generation:", made.GetGeneration())
	one.SetName("bad")
	check(unstructured.SetNestedField(one.Object, int64(0), "spec", "size"))
	_, err = api.Create(ctx, one, meta.CreateOptions{})
	fmt.Println("invalid:", errors.IsInvalid(err), err)
	apply := []byte(`{"apiVersion":"conformance.example.com/v1","kind":"Widget","metadata":{"name":"w","labels":{"step":"2"}}}`)
	force := true
	_, err = api.Patch(ctx, "w", types.ApplyPatchType, apply, meta.PatchOptions{FieldManager: "go", Force: &force})
	check(err)
	saw.wait("widget/w", "there 2")
	policy := meta.DeletePropagationForeground
	check(api.Delete(ctx, "w", meta.DeleteOptions{PropagationPolicy: &policy}))
	saw.wait("widget/w", "gone")
}

func pages(ctx context.Context, client *kubernetes.Clientset) {
	next, count := "", 0
	for {
		page, err := client.CoreV1().ConfigMaps(namespace).List(ctx, meta.ListOptions{Limit: 1, Continue: next})
		check(err)
		count += len(page.Items)
		if next = page.Continue; next == "" {
			break
		}
	}
	fmt.Println("in pages of one:", count)
}

func lead(ctx context.Context, client *kubernetes.Clientset) {
	ctx, stop := context.WithCancel(ctx)
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  meta.ObjectMeta{Name: "leader", Namespace: namespace},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { fmt.Println("leads"); stop() },
			OnStoppedLeading: func() { fmt.Println("leads no more") },
		},
	})
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}
