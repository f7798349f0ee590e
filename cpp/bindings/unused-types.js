// Embind brings code for each type that a binding might pass. Ours pass numbers alone: the others'
// would be a tenth of the package's JavaScript.
for (const type of ['std_string', 'std_wstring', 'emval', 'memory_view', 'bigint']) {
  addToLibrary({
    [`_embind_register_${type}`]: () => {},
    [`_embind_register_${type}__deps`]: [],
  });
}
