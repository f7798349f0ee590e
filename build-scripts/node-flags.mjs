// The flags that node needs to run a variant.

// A module whose only function is f32x4.relaxed_madd of three zero vectors.
const zero = [0x41, 0, 0xfd, 0x11];
const relaxedSimdWorks = WebAssembly.validate(Uint8Array.of(
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0,
  0x0a, 0x13, 1, 0x11, 0, ...zero, ...zero, ...zero, 0xfd, 0x85, 2, 0x0b,
));

/** Node 20 runs relaxed SIMD behind a flag, which newer ones no longer know. */
export const nodeFlags = (variant) =>
  variant.startsWith('relaxed') && !relaxedSimdWorks ? ['--experimental-wasm-relaxed-simd'] : [];
