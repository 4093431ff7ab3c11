import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.utils.Exit;

/** Runs Kafka's command line classes one after the other in this JVM: a JVM of its own for each would mostly be starting. */
public final class ToolHost {
    /** In place of the JVM's end. */
    private static final class Exited extends Error {
        Exited() {
            super("the command has ended", null, false, false);
        }
    }

    private static Integer status;

    public static void main(String[] none) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        PrintStream ownOut = System.out;
        DataOutputStream out = new DataOutputStream(ownOut);
        Exit.Procedure end = (code, message) -> {
            if (status == null) status = code; // a command that catches everything asks for another end
            throw new Exited();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        List<Runnable> atEnd = new ArrayList<>(); // of the command's own: some write and say the rest of it there
        Exit.setShutdownHookAdder((name, hook) -> atEnd.add(hook));
        Field field = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
        field.setAccessible(true);
        @SuppressWarnings("unchecked")
        Map<Thread, Thread> ofJvm = (Map<Thread, Thread>) field.get(null); // VerifiableProducer's is there
        while (true) {
            int count = in.readInt(); // EOFException: nobody wants any more
            String[] words = new String[count];
            for (int i = 0; i < count; i++) words[i] = new String(in.readNBytes(in.readInt()), "UTF-8");
            InputStream stdin = new ByteArrayInputStream(in.readNBytes(in.readInt()));
            String[] arguments = java.util.Arrays.copyOfRange(words, 1, count);
            ByteArrayOutputStream said = new ByteArrayOutputStream(), complained = new ByteArrayOutputStream();
            status = null;
            atEnd.clear();
            Set<Thread> before = Set.copyOf(ofJvm.keySet());
            System.setIn(stdin);
            System.setOut(new PrintStream(said, true));
            System.setErr(new PrintStream(complained, true));
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException thrown) {
                if (!(thrown.getCause() instanceof Exited) && status == null) {
                    thrown.getCause().printStackTrace(System.err);
                    status = 1;
                }
            }
            for (Thread hook : List.copyOf(ofJvm.keySet())) {
                if (before.contains(hook)) continue;
                ofJvm.remove(hook);
                atEnd.add(hook);
            }
            for (Runnable hook : atEnd) hook.run();
            System.out.flush();
            out.writeInt(status == null ? 0 : status);
            for (ByteArrayOutputStream one : new ByteArrayOutputStream[] {said, complained}) {
                out.writeInt(one.size());
                one.writeTo(out);
            }
            out.flush();
        }
    }
}
