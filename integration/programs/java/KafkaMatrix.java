import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Kafka's Java client for integration/test_matrix.py, which knows the same records. */
public class KafkaMatrix {
    static final long BASE = 1_700_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        for (int at = 3; at < arguments.length; at++) {
            if (arguments[0].equals("write")) {
                write(arguments[1], Integer.parseInt(arguments[2]), arguments[at].split("=")[0], arguments[at].split("=")[1]);
            } else {
                read(arguments[1], Integer.parseInt(arguments[2]), arguments[at]);
            }
        }
    }

    static void write(String address, int count, String topic, String codec) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", address, "compression.type", codec, "linger.ms", 50);
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> acks = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                var headers = new RecordHeaders();
                if (i % 3 == 1) {
                    headers.add("h", text("text"));
                } else if (i % 3 == 2) {
                    headers.add("twice", text("1")).add("twice", new byte[] {(byte) 0xff}).add("null", null);
                }
                acks.add(producer.send(new ProducerRecord<>(topic, 0, BASE + i, key(i), value(i), headers)));
            }
            for (var ack : acks) {
                ack.get();
            }
        }
    }

    static byte[] key(int i) {
        return switch (i % 4) {
            case 0 -> null;
            case 1 -> new byte[0];
            case 2 -> text("k" + i);
            default -> new byte[] {(byte) 0xff, (byte) i};
        };
    }

    static byte[] value(int i) {
        return switch (i % 5) {
            case 4 -> null;
            case 3 -> new byte[0];
            case 2 -> new byte[] {0, (byte) 0xff, (byte) i};
            default -> text(("v" + i).repeat(i + 1));
        };
    }

    static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static void read(String address, int count, String topic) {
        Map<String, Object> settings = Map.of("bootstrap.servers", address);
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            var partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            int read = 0;
            long until = System.currentTimeMillis() + 20_000;
            while (read < count && System.currentTimeMillis() < until) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    read++;
                    var headers = new StringBuilder();
                    for (Header header : record.headers()) {
                        headers.append(header.key()).append('=').append(encoded(header.value())).append(',');
                    }
                    System.out.println(String.join("\t", topic, String.valueOf(record.offset()), String.valueOf(record.timestamp()),
                            encoded(record.key()), encoded(record.value()), headers));
                }
            }
        }
    }

    static String encoded(byte[] bytes) {
        return bytes == null ? "null" : "b" + Base64.getEncoder().encodeToString(bytes);
    }
}
