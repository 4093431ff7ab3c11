import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies records from one topic to another, each batch in a transaction with the offsets it was read at; each third one is aborted.
 * Arguments: address, from, to, transactional id, after how many silent seconds to end, and the group's protocol if it is not the
 * classic one. Says "copied N" after each commit.
 */
public class TransactionalCopier {
    public static void main(String[] arguments) throws Exception {
        String address = arguments[0], from = arguments[1], to = arguments[2], id = arguments[3];
        int silence = Integer.parseInt(arguments[4]);
        Map<String, Object> reading = new HashMap<>(Map.of(
                "bootstrap.servers", address, "group.id", "copies-" + to, "isolation.level", "read_committed", "enable.auto.commit", false,
                "auto.offset.reset", "earliest", "max.poll.records", 40));
        if (arguments.length > 5) {
            reading.put("group.protocol", arguments[5]);
        } else {
            reading.putAll(Map.of("session.timeout.ms", 6000, "heartbeat.interval.ms", 500));
        }
        Map<String, Object> writing = Map.of("bootstrap.servers", address, "transactional.id", id, "transaction.timeout.ms", 15000);
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
                var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            long heard = System.currentTimeMillis();
            int copied = 0;
            for (int transaction = 1; System.currentTimeMillis() - heard < silence * 1000L; ) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (consumer.assignment().isEmpty()) {
                    heard = System.currentTimeMillis();  // the one before was killed, and its session goes on
                }
                if (records.isEmpty()) {
                    continue;
                }
                heard = System.currentTimeMillis();
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (var record : records) {
                    producer.send(new ProducerRecord<>(to, record.partition(), record.key(), record.value()));
                    offsets.put(new TopicPartition(from, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (transaction++ % 3 == 0) {
                    producer.abortTransaction();
                    rewind(consumer);
                } else {
                    producer.commitTransaction();
                    copied += records.count();
                    System.out.println("copied " + copied);
                }
            }
        }
        System.out.println("done");
    }

    /** To what is committed: the consumer is ahead of that after an abort. */
    static void rewind(KafkaConsumer<String, String> consumer) {
        var committed = consumer.committed(consumer.assignment());
        for (var partition : new ArrayList<>(consumer.assignment())) {
            OffsetAndMetadata offset = committed.get(partition);
            if (offset == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, offset);
            }
        }
    }
}
