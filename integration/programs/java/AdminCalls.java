import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** The calls of AKHQ and kafka-ui when they open a cluster. A line for each: its name, then what came, or the class of the exception. */
public final class AdminCalls {
    private static void say(String name, Callable<Object> call) throws Exception {
        String came;
        try {
            came = String.valueOf(call.call());
        } catch (ExecutionException failed) {
            came = failed.getCause().getClass().getSimpleName();
        }
        System.out.println(name + "\t" + came);
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        try (Admin admin = Admin.create(settings)) {
            say("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
            say("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
            say("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all().get());
            say("describeDelegationToken", () -> admin.describeDelegationToken().delegationTokens().get());
            ClientQuotaEntity anna = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "anna"));
            List<ClientQuotaAlteration.Op> limit = List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6));
            say("alterClientQuotas", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(anna, limit))).all().get());
            ScramCredentialInfo scram = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192);
            say("alterUserScramCredentials", () ->
                admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("anna", scram, "secret"))).all().get());
            ConfigResource node = new ConfigResource(ConfigResource.Type.BROKER, arguments[1]);
            say("describeConfigs", () -> {
                Map<String, String> told = new TreeMap<>();
                Config config = admin.describeConfigs(Collections.singleton(node)).all().get().get(node);
                for (ConfigEntry one : config.entries()) told.put(one.name(), one.value());
                return told;
            });
            say("describeFeatures", () -> {
                FeatureMetadata features = admin.describeFeatures().featureMetadata().get();
                return new TreeMap<>(features.finalizedFeatures());
            });
            say("describeMetadataQuorum", () -> {
                QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
                return quorum.voters().stream().allMatch(one -> one.logEndOffset() >= 0 && one.lastCaughtUpTimestamp().isPresent());
            });
        }
    }
}
