// Copies records from one topic to another, each batch in a transaction with the offsets it was read at; each third one is aborted first.
// Arguments: address, from, to, transactional id, and after how many silent seconds to end. Says "copied N" after each commit.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type copier struct {
	sync.Mutex  // partitions come in goroutines of their own, and the producer has one transaction at a time
	producer    sarama.SyncProducer
	group, to   string
	transaction int
	copied      int
	heard       time.Time
}

func (*copier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (one *copier) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	var batch []*sarama.ConsumerMessage
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			batch = append(batch, message)
			if len(batch) < 40 {
				continue
			}
		case <-time.After(200 * time.Millisecond):
		case <-session.Context().Done():
			return nil
		}
		if len(batch) > 0 {
			one.copy(batch)
			batch = nil
		}
	}
}

func (one *copier) copy(batch []*sarama.ConsumerMessage) {
	one.Lock()
	defer one.Unlock()
	one.heard = time.Now()
	for committed := false; !committed; {
		check(one.producer.BeginTxn())
		var messages []*sarama.ProducerMessage
		for _, message := range batch {
			messages = append(messages, &sarama.ProducerMessage{Topic: one.to, Partition: message.Partition, Value: sarama.ByteEncoder(message.Value)})
		}
		check(one.producer.SendMessages(messages))
		check(one.producer.AddMessageToTxn(batch[len(batch)-1], one.group, nil))
		one.transaction++
		if one.transaction%3 == 0 {
			check(one.producer.AbortTxn())
		} else {
			check(one.producer.CommitTxn())
			committed = true
		}
	}
	one.copied += len(batch)
	fmt.Println("copied", one.copied)
}

func main() {
	address, from, to, id := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	silence, err := strconv.Atoi(os.Args[5])
	check(err)
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = id
	config.Producer.Transaction.Timeout = 15 * time.Second
	config.Producer.Transaction.Retry.Max = 500
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	producer, err := sarama.NewSyncProducer([]string{address}, config)
	check(err)
	group, err := sarama.NewConsumerGroup([]string{address}, "copies-"+to, config)
	check(err)
	one := &copier{producer: producer, group: "copies-" + to, to: to, heard: time.Now()}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			one.Lock()
			if time.Since(one.heard) > time.Duration(silence)*time.Second {
				stop()
			}
			one.Unlock()
		}
	}()
	for ctx.Err() == nil {
		group.Consume(ctx, []string{from}, one)
	}
	group.Close()
	check(producer.Close())
	fmt.Println("done")
}
