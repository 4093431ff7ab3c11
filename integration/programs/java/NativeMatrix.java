import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;

/** Pulsar's Java client for integration/test_matrix.py, which knows the same messages. */
public class NativeMatrix {
    static final long BASE = 1_700_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[1]).build()) {
            for (int at = 3; at < arguments.length; at++) {
                if (arguments[0].equals("write")) {
                    String[] wanted = arguments[at].split("=");
                    write(client, Integer.parseInt(arguments[2]), wanted[0], wanted[1], CompressionType.valueOf(wanted[2]));
                } else {
                    read(client, arguments[at]);
                }
            }
        }
    }

    static void write(PulsarClient client, int count, String topic, String kind, CompressionType compression) throws Exception {
        var builder = client.newProducer(Schema.BYTES).topic(topic).compressionType(compression);
        builder.enableBatching(kind.equals("batched")).enableChunking(kind.equals("chunked"));
        try (var producer = builder.create()) {
            List<CompletableFuture<MessageId>> acks = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                var message = producer.newMessage().value(value(i, kind));
                switch (i % 4) {
                    case 1 -> message.key("k" + i);
                    case 2 -> message.keyBytes(new byte[] {(byte) 0xff, (byte) i});
                    case 3 -> message.orderingKey(new byte[] {1, (byte) i});
                    default -> { }
                }
                if (i % 2 == 1) {
                    message.property("p", "text " + i).eventTime(BASE + i);
                }
                acks.add(message.sendAsync());
            }
            producer.flush();
            for (var ack : acks) {
                ack.get();
            }
        }
    }

    static byte[] value(int i, String kind) {
        if (kind.equals("chunked") && i == 1) {
            byte[] large = new byte[6_000_000];
            for (int at = 0; at < large.length; at++) {
                large[at] = (byte) (at * 31 + (at >> 9));
            }
            return large;
        }
        return switch (i % 5) {
            case 4 -> null;
            case 3 -> new byte[0];
            case 2 -> new byte[] {0, (byte) 0xff, (byte) i};
            default -> ("v" + i).repeat(i + 1).getBytes(StandardCharsets.UTF_8);
        };
    }

    static void read(PulsarClient client, String topic) throws Exception {
        try (var reader = client.newReader(Schema.BYTES).topic(topic).startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                Message<byte[]> message = reader.readNext();
                var properties = new StringBuilder();
                for (var property : new TreeMap<>(message.getProperties()).entrySet()) {
                    properties.append(property.getKey()).append('=').append(encoded(property.getValue().getBytes(StandardCharsets.UTF_8))).append(',');
                }
                System.out.println(String.join("\t", topic, String.valueOf(message.getEventTime()),
                        message.hasKey() ? encoded(message.getKeyBytes()) : "null",
                        encoded(message.getValue()), properties));
            }
        }
    }

    static String encoded(byte[] bytes) {
        return bytes == null ? "null" : "b" + Base64.getEncoder().encodeToString(bytes);
    }
}
