// A member of a consumer group: says in JSON lines what it is assigned and what it reads, until its input ends.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"

	"github.com/IBM/sarama"
)

var mutex sync.Mutex

func say(what map[string]any) {
	mutex.Lock()
	defer mutex.Unlock()
	json.NewEncoder(os.Stdout).Encode(what)
}

type handler struct{ topic string }

func (one handler) Setup(session sarama.ConsumerGroupSession) error {
	partitions := session.Claims()[one.topic]
	if partitions == nil {
		partitions = []int32{}
	}
	say(map[string]any{"assigned": partitions})
	return nil
}

func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			say(map[string]any{"read": []int64{int64(message.Partition), message.Offset}})
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	address, group, topic := os.Args[1], os.Args[2], os.Args[3]
	config := sarama.NewConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	if len(os.Args) > 4 && os.Args[4] == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	client, err := sarama.NewConsumerGroup([]string{address}, group, config)
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
		if err := client.Consume(ctx, []string{topic}, handler{topic}); err != nil {
			say(map[string]any{"error": err.Error()})
		}
	}
	client.Close()
}
