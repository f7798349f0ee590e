// Writes ONNX models as protobuf bytes: the few message fields that the graphs here need (field numbers of onnx.proto).

const IR_VERSION = 10;
const DOMAINS = { '': 23, 'com.microsoft': 1 };
const ELEMENTS = [[Float32Array, 1], [Int32Array, 6], [BigInt64Array, 7], [Uint8Array, 9]];
const ATTRIBUTE = { float: 1, int: 2, string: 3, ints: 7, strings: 8 };

/**
 * A model. `inputs`, `outputs`: names with shapes; `constants`: names with { data, shape };
 * `nodes`: { op, domain, inputs, outputs, attributes }, an attribute being an integer, text, a list of either, or { float }.
 */
export function encodeModel({ nodes, inputs, outputs, constants = {} }) {
  const values = (field, named) => Object.entries(named).flatMap(([name, shape]) => message(field, valueInfo(name, shape)));
  const graph = [
    ...nodes.flatMap((node) => message(1, encodeNode(node))),
    text(2, 'graph'),
    ...Object.entries(constants).flatMap(([name, constant]) => message(5, encodeTensor(name, constant))),
    ...values(11, inputs),
    ...values(12, outputs),
  ];
  const opsets = Object.entries(DOMAINS).flatMap(([domain, version]) => message(8, [text(1, domain), integer(2, version)]));
  return joined([integer(1, IR_VERSION), ...message(7, graph), ...opsets]);
}

function encodeNode({ op, domain = '', inputs, outputs, attributes = {} }) {
  return [
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, op),
    ...Object.entries(attributes).flatMap(([name, value]) => message(5, [text(1, name), ...attributeValue(value)])),
    text(7, domain),
  ];
}

function attributeValue(value) {
  const typed = (type, ...fields) => [...fields, integer(20, ATTRIBUTE[type])];
  if (typeof value === 'number') return typed('int', integer(3, value));
  if (typeof value === 'string') return typed('string', text(4, value));
  if (!Array.isArray(value)) return typed('float', tag(2, 5), new Uint8Array(Float32Array.of(value.float).buffer));
  if (typeof value[0] === 'string') return typed('strings', ...value.map((item) => text(9, item)));
  return typed('ints', ...value.map((item) => integer(8, item)));
}

function encodeTensor(name, { data, shape }) {
  const [, type] = ELEMENTS.find(([Elements]) => data instanceof Elements);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return [...shape.map((length) => integer(1, length)), integer(2, type), text(8, name), ...bytesField(9, bytes)];
}

const FLOAT = 1;
const valueInfo = (name, shape) => [
  text(1, name),
  ...message(2, message(1, [integer(1, FLOAT), ...message(2, shape.flatMap((length) => message(1, [integer(1, length)])))])),
];

const message = (field, parts) => bytesField(field, joined(parts));
const bytesField = (field, bytes) => [tag(field, 2), varint(bytes.length), bytes];
const text = (field, string) => joined(bytesField(field, new TextEncoder().encode(string)));
const integer = (field, value) => joined([tag(field, 0), varint(value)]);
const tag = (field, wireType) => varint(field * 8 + wireType);

function varint(value) {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    if (rest < 0x80n) return Uint8Array.of(...bytes, Number(rest));
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}

function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
