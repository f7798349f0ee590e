// Every operation says how it went by a status; nothing throws, nothing aborts.
#pragma once

namespace qkv {

// The one list of outcomes: enumerator, and the code that JavaScript shows.
#define QKV_STATUS_LIST(entry)                                \
  entry(ok, "OK") entry(invalid_argument, "INVALID_ARGUMENT") \
      entry(shape_mismatch, "SHAPE_MISMATCH") entry(out_of_memory, "OUT_OF_MEMORY")

enum class status {
#define QKV_STATUS_ENUMERATOR(name, code) name,
  QKV_STATUS_LIST(QKV_STATUS_ENUMERATOR)
#undef QKV_STATUS_ENUMERATOR
};

// The code of a status, such as "SHAPE_MISMATCH".
const char* status_code(status value);

}  // namespace qkv
