// Flows of stompjs over WebSocket, as browsers use it: `node stompjs_flows.js URL FLOW …` prints a JSON line for each.

import { createInterface } from "node:readline";
import { Client } from "@stomp/stompjs";

const WAIT_MS = 10_000;
const MOMENT_MS = 300;
const url = process.argv[2];
const own = `js.${process.pid}`;

// A client whose messages wait in a list for `next`.
class Connection {
  constructor(options = {}) {
    this.messages = [];
    this.waiting = [];
    this.connected = 0;
    this.client = new Client({
      brokerURL: url,
      connectHeaders: { login: "admin", passcode: "admin", ...options.headers },
      reconnectDelay: 200,
      heartbeatIncoming: 0,
      heartbeatOutgoing: 0,
      onConnect: frame => {
        this.connected += 1;
        this.version = frame.headers.version;
        options.onConnect?.(this);
      },
      onStompError: frame => (this.error = frame.headers.message),
      onWebSocketClose: () => (this.closed = (this.closed ?? 0) + 1),
      ...options.client,
    });
  }

  async open() {
    this.client.activate();
    await until(() => this.connected > 0, "a connection");
    return this;
  }

  subscribe(destination, headers = {}) {
    return this.client.subscribe(destination, message => this.messages.push(message), headers);
  }

  async next() {
    await until(() => this.messages.length > 0, "a message");
    return this.messages.shift();
  }

  async nothing() {
    await new Promise(done => setTimeout(done, MOMENT_MS));
    same(0, this.messages.length);
  }

  // Sends, and waits for the receipt.
  async send(destination, body, headers = {}) {
    const receipt = `r${Math.random()}`;
    let done = false;
    this.client.watchForReceipt(receipt, () => (done = true));
    const content = typeof body === "string" ? { body } : { binaryBody: body };
    this.client.publish({ destination, ...content, headers: { receipt, ...headers } });
    await until(() => done, "a receipt");
  }
}

async function until(condition, what) {
  const end = Date.now() + WAIT_MS;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`${what} did not come`);
    await new Promise(done => setTimeout(done, 10));
  }
}

function same(expected, found) {
  if (JSON.stringify(expected) !== JSON.stringify(found)) {
    throw new Error(`expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`);
  }
}

const flows = {
  async bodies(queue) {
    const connection = await new Connection().open();
    same("1.2", connection.version);
    connection.subscribe(queue);
    await connection.send(queue, "žluťoučký kůň 😀", { persistent: "true", escaped: "c\nd:\\" });
    const text = await connection.next();
    same("žluťoučký kůň 😀", text.body);
    same("c\nd:\\", text.headers.escaped);
    const bytes = new Uint8Array(300_000).map((_, at) => at * 7);
    await connection.send(queue, bytes);
    same(Array.from(bytes), Array.from((await connection.next()).binaryBody));
    await connection.client.deactivate();
  },

  async acknowledgements(queue) {
    const connection = await new Connection().open();
    connection.subscribe(queue, { ack: "client-individual" });
    for (const text of ["1", "2"]) await connection.send(queue, text, { persistent: "true" });
    const first = await connection.next();
    (await connection.next()).ack();
    first.nack();
    const again = await connection.next();
    same(["1", "true"], [again.body, again.headers.redelivered]);
    again.ack();
    await connection.nothing();
    await connection.client.deactivate();
  },

  async transactions(queue) {
    const connection = await new Connection().open();
    connection.subscribe(queue);
    for (const ending of ["abort", "commit"]) {
      const transaction = connection.client.begin();
      await connection.send(queue, ending, { transaction: transaction.id });
      await connection.nothing();
      transaction[ending]();
    }
    same("commit", (await connection.next()).body);
    await connection.client.deactivate();
  },

  async heartBeats(queue) {
    const connection = await new Connection({ client: { heartbeatIncoming: 500, heartbeatOutgoing: 500 } }).open();
    await new Promise(done => setTimeout(done, 3_000));
    same(1, connection.connected);
    connection.subscribe(queue);
    await connection.send(queue, "alive");
    same("alive", (await connection.next()).body);
    await connection.client.deactivate();
  },

  async topicAndDurableSubscription(queue, topic) {
    const headers = { "durable-subscription-name": "sub" };
    const mine = { headers: { "client-id": own } };
    let connection = await new Connection(mine).open();
    connection.subscribe(topic, headers);
    const sender = await new Connection().open();
    await sender.send(topic, "1", { persistent: "true" });
    same("1", (await connection.next()).body);
    await connection.client.deactivate();
    await sender.send(topic, "2", { persistent: "true" });
    connection = await new Connection(mine).open();
    connection.subscribe(topic, headers);
    same("2", (await connection.next()).body);
    await connection.client.deactivate();
    await sender.client.deactivate();
  },

  async wrongPassword() {
    const connection = new Connection({ headers: { passcode: "wrong" } });
    connection.client.reconnectDelay = 0;
    connection.client.activate();
    await until(() => connection.error !== undefined, "an error");
    await connection.client.deactivate();
  },

  // The harness restarts the node when it reads the line, and answers with one.
  async restart(queue) {
    const subscribe = connection => connection.subscribe(queue, { ack: "client" });
    const connection = await new Connection({ onConnect: subscribe }).open();
    await connection.send(queue, "kept", { persistent: "true" });
    same("kept", (await connection.next()).body);
    console.log(JSON.stringify({ restart: true }));
    const lines = createInterface({ input: process.stdin });
    await new Promise(done => lines.once("line", done));
    lines.close();
    await until(() => connection.connected === 2, "a second connection");
    const again = await connection.next();
    same("kept", again.body);
    again.ack();
    await connection.nothing();
    await connection.client.deactivate();
  },
};

for (const name of process.argv.slice(3)) {
  let failure = "";
  try {
    await flows[name](`/queue/${own}.${name}`, `/topic/${own}.${name}`);
  } catch (error) {
    failure = String(error?.stack ?? error).replaceAll(/\s+/g, " ");
  }
  console.log(JSON.stringify({ flow: name, failure }));
}
process.exit(0);
