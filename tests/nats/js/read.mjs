// Reads a stream of Stela's with the official JavaScript client, and checks it by
// docs/reference/wire-format.md alone. usage: node read.mjs URL STREAM COUNT
import assert from "node:assert/strict";
import { AckPolicy, DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

const [url, stream, count] = process.argv.slice(2);
const connection = await connect({ servers: url });
const manager = await jetstreamManager(connection);
await manager.consumers.add(stream, {
  durable_name: "javascript",
  ack_policy: AckPolicy.Explicit,
  deliver_policy: DeliverPolicy.All,
});
const consumer = await jetstream(connection).consumers.get(stream, "javascript");

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ids = new Set();
const published = new Map();
let previous = 0;
let read = 0;
for await (const message of await consumer.fetch({ max_messages: Number(count), expires: 5000 })) {
  const get = (name) => message.headers.get(name);
  const id = get("ce-id");
  assert.match(id, uuid);
  assert.equal(get("Nats-Msg-Id"), id);
  assert.ok(!ids.has(id), `${id} came twice`);
  ids.add(id);

  assert.equal(get("ce-specversion"), "1.0");
  assert.equal(get("ce-datacontenttype"), "application/json");
  assert.equal(get("ce-source"), `urn:uuid:${get("Stela-Store")}`);
  assert.ok(!Number.isNaN(Date.parse(get("ce-time"))));
  assert.ok(message.subject.endsWith(`.${get("ce-type")}`));

  const sequence = Number(get("Stela-Sequence"));
  assert.ok(sequence > previous, "the partition is in order");
  assert.equal(Number(get("ce-sequence")), sequence);
  assert.equal(Number(get("Stela-Previous")), previous);
  previous = sequence;

  const subject = decodeURIComponent(get("ce-subject"));
  assert.equal(Number(get("Stela-Stream-Previous")), published.get(subject) ?? 0);
  published.set(subject, Number(get("ce-streamversion")));

  const payload = message.json();
  assert.equal(typeof payload, "object");
  console.log(JSON.stringify({ subject, type: get("ce-type"), actor: decodeURIComponent(get("ce-actor")), payload }));
  message.ack();
  ++read;
}
assert.equal(read, Number(count));
await connection.close();
