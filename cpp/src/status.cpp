#include "qkv/status.hpp"

namespace qkv {

namespace {
constexpr const char* codes[] = {
#define QKV_STATUS_CODE(name, code) code,
    QKV_STATUS_LIST(QKV_STATUS_CODE)
#undef QKV_STATUS_CODE
};
}  // namespace

const char* status_code(status value) { return codes[static_cast<int>(value)]; }

}  // namespace qkv
