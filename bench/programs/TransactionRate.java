import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One transaction after the other, for some seconds. Arguments: address, topic, records of each, partitions, seconds, and a transactional
 * id; without one records are written without transactions, in the same portions. Says transactions a second, and a commit's p50 and p99 in ms.
 */
public class TransactionRate {
    static final int WARM = 50;

    public static void main(String[] arguments) {
        String address = arguments[0], topic = arguments[1];
        int records = Integer.parseInt(arguments[2]), partitions = Integer.parseInt(arguments[3]);
        long lasts = Long.parseLong(arguments[4]) * 1_000_000_000L;
        boolean transactional = arguments.length > 5;
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", address, "linger.ms", 0));
        if (transactional) {
            settings.put("transactional.id", arguments[5]);
        }
        List<Long> commits = new ArrayList<>();
        byte[] payload = new byte[100];
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (transactional) {
                producer.initTransactions();
            }
            long begun = System.nanoTime();
            for (int turn = 0; System.nanoTime() - begun < lasts; turn++) {
                if (turn == WARM) {
                    commits.clear();
                    begun = System.nanoTime();
                }
                if (transactional) {
                    producer.beginTransaction();
                }
                for (int number = 0; number < records; number++) {
                    producer.send(new ProducerRecord<>(topic, (turn + number) % partitions, null, payload));
                }
                producer.flush();
                long committing = System.nanoTime();
                if (transactional) {
                    producer.commitTransaction();
                }
                commits.add(System.nanoTime() - committing);
            }
            double seconds = (System.nanoTime() - begun) / 1e9;
            Collections.sort(commits);
            System.out.printf("%.2f %.3f %.3f%n", commits.size() / seconds, at(commits, 0.5), at(commits, 0.99));
        }
    }

    static double at(List<Long> sorted, double part) {
        return sorted.get((int) (sorted.size() * part)) / 1e6;
    }
}
