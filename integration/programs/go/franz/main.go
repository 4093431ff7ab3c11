// A member of a consumer group: says in JSON lines what it is assigned and what it reads, until its input ends.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

var mutex sync.Mutex

func say(what map[string]any) {
	mutex.Lock()
	defer mutex.Unlock()
	json.NewEncoder(os.Stdout).Encode(what)
}

func main() {
	address, group, topic := os.Args[1], os.Args[2], os.Args[3]
	isolation := kgo.ReadUncommitted()
	if len(os.Args) > 4 && os.Args[4] == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	held := map[int32]bool{}
	tell := func() {
		partitions := []int32{}
		for partition := range held {
			partitions = append(partitions, partition)
		}
		say(map[string]any{"assigned": partitions})
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(isolation),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
			for _, partition := range given[topic] {
				held[partition] = true
			}
			tell()
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, taken map[string][]int32) {
			client.CommitUncommittedOffsets(ctx)
			for _, partition := range taken[topic] {
				delete(held, partition)
			}
			tell()
		}),
	)
	if err != nil {
		say(map[string]any{"failed": err.Error()})
		os.Exit(1)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachRecord(func(record *kgo.Record) {
			say(map[string]any{"read": []int64{int64(record.Partition), record.Offset}})
		})
	}
	client.CommitUncommittedOffsets(context.Background())
	client.Close()
}
