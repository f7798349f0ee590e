// Node 20 loses a wake-up now and then where threads wait by Atomics.wait and by Atomics.waitAsync, and
// the program hangs; without the second, Emscripten sends messages instead.
delete Atomics.waitAsync;
