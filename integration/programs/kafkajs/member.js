// A member of a consumer group: says in JSON lines what it is assigned and what it reads, until its input ends.
const { Kafka, logLevel } = require("kafkajs");

const [address, groupId, topic, isolation] = process.argv.slice(2);
const say = (what) => process.stdout.write(JSON.stringify(what) + "\n");

(async () => {
  const kafka = new Kafka({ clientId: "kafkajs", brokers: [address], logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({ groupId, readUncommitted: isolation === "read_uncommitted" });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => say({ assigned: payload.memberAssignment[topic] || [] }));
  // Also where it held nothing for the application.
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) =>
    say({ position: [payload.partition, Number(payload.lastOffset) + 1] }));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommitInterval: 200,
    eachMessage: async ({ partition, message }) => say({ read: [partition, Number(message.offset)] }),
  });
  process.stdin.resume();
  process.stdin.on("end", async () => {
    await consumer.disconnect();
    process.exit(0);
  });
})().catch((error) => {
  say({ failed: String(error) });
  process.exit(1);
});
