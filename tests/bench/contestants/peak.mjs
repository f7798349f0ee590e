// The machine's peak in the same host and process: loops of nothing but multiply-adds, as WebAssembly made here.

// As many chains as hide a multiply-add's latency and leave no register over.
const CHAINS = 10;
const STEPS_PER_LOOP = 4;
const LANES = 4;
const LOOPS = 20_000;

const peak = (name, multiplyAdd) => ({
  name,
  patient: true,
  gradients: true,
  async open() {
    const { exports } = await WebAssembly.instantiate(await WebAssembly.compile(moduleOf(multiplyAdd)));
    const flops = 2 * LANES * CHAINS * STEPS_PER_LOOP * LOOPS;
    return { prepare: () => [{ formulation: `${CHAINS} chains`, flops, call: () => exports.run(LOOPS) }] };
  },
});

// Instructions that take chain, factor and term from the stack and leave chain * factor + term.
export const relaxedPeak = peak('peak relaxed', (chain) => [...get(chain), ...get(FACTOR), ...get(TERM), 0xfd, 0x85, 0x02]);
export const simdPeak = peak('peak simd', (chain) => [...get(chain), ...get(FACTOR), 0xfd, 0xe6, 0x01, ...get(TERM), 0xfd, 0xe4, 0x01]);

// Local variables: the parameter, how many loops are left, comes first.
const LEFT = 0;
const FIRST_CHAIN = 1;
const FACTOR = FIRST_CHAIN + CHAINS;
const TERM = FACTOR + 1;

const get = (local) => [0x20, local];
const set = (local) => [0x21, local];
const splat = (number) => [0x43, ...new Uint8Array(Float32Array.of(number).buffer), 0xfd, 0x13];

/** (module (func (export "run") (param i32) (result f32) ...)) */
function moduleOf(multiplyAdd) {
  const chains = Array.from({ length: CHAINS }, (_, i) => FIRST_CHAIN + i);
  const step = chains.flatMap((chain) => [...multiplyAdd(chain), ...set(chain)]);
  const code = [
    1, CHAINS + 2, 0x7b,
    ...splat(0.999), ...set(FACTOR), ...splat(0.001), ...set(TERM),
    ...chains.flatMap((chain) => [...splat(chain), ...set(chain)]),
    0x03, 0x40,
    ...Array(STEPS_PER_LOOP).fill(step).flat(),
    ...get(LEFT), 0x41, 1, 0x6b, 0x22, LEFT, 0x0d, 0, 0x0b,
    ...get(FIRST_CHAIN), ...chains.slice(1).flatMap((chain) => [...get(chain), 0xfd, 0xe4, 0x01]),
    0xfd, 0x1f, 0, 0x0b,
  ];
  const body = [...length(code), ...code];
  const section = (id, bytes) => [id, ...length(bytes), ...bytes];
  return Uint8Array.of(
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [1, 0x60, 1, 0x7f, 1, 0x7d]),
    ...section(3, [1, 0]),
    ...section(7, [1, 3, ...new TextEncoder().encode('run'), 0, 0]),
    ...section(10, [1, ...body]),
  );
}

/** LEB128 of up to 14 bits. */
const length = ({ length }) => [(length & 0x7f) | 0x80, length >> 7];
