// Copies records from one topic to another, each batch in a transaction with the offsets it was read at; each third one is aborted.
// Arguments: address, from, to, transactional id, and after how many silent seconds to end. Says "copied N" after each commit.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	address, from, to, id := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	silence, err := strconv.Atoi(os.Args[5])
	check(err)
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(address), kgo.TransactionalID(id), kgo.TransactionTimeout(15*time.Second),
		kgo.ConsumerGroup("copies-"+to), kgo.ConsumeTopics(from), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	check(err)
	defer session.Close()
	copied, heard := 0, time.Now()
	for transaction := 1; time.Since(heard) < time.Duration(silence)*time.Second; {
		ctx, stop := context.WithTimeout(context.Background(), 200*time.Millisecond)
		fetches := session.PollRecords(ctx, 40)
		stop()
		if fetches.NumRecords() == 0 {
			continue
		}
		heard = time.Now()
		check(session.Begin())
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(context.Background(), &kgo.Record{Topic: to, Partition: record.Partition, Key: record.Key, Value: record.Value}, nil)
		})
		commits := kgo.TransactionEndTry(transaction%3 != 0)
		transaction++
		committed, err := session.End(context.Background(), commits)
		check(err)
		if committed {
			copied += fetches.NumRecords()
			fmt.Println("copied", copied)
		}
	}
	fmt.Println("done")
}
