// Replies of servers: bytes that come in other pieces are the same replies, no reply is larger than the
// limits, and a map of slots that is read is one. The first byte is the size of the pieces.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/redis/slot_map.hpp"
#include "fuzz/records.hpp"

namespace {

using namespace sluice::redis;
using sluice::fuzzing::require;

constexpr ReplyLimits kLimits{.bytes = 2000, .elements = 300};
const Endpoint kFrom{"10.0.0.1", 7000};

struct Size {
  std::size_t elements = 0, bytes = 0;
};

Size size_of(const Reply& reply) {
  Size size{reply.elements.size(), reply.text.size()};
  for (const Reply& element : reply.elements) {
    const Size more = size_of(element);
    size.elements += more.elements;
    size.bytes += more.bytes;
  }
  return size;
}

std::string shown(const Reply& reply) {
  std::string out = std::to_string(static_cast<int>(reply.kind)) + ' ' +
                    std::to_string(reply.integer) + ' ' + reply.text + '[';
  for (const Reply& element : reply.elements) out += shown(element) + ',';
  return out + ']';
}

void check_map(const Reply& reply) {
  std::string problem;
  const SlotMap map = SlotMap::read(reply, kFrom, problem);
  require(map.empty() != problem.empty());
  for (unsigned slot = 0; slot < kSlots; ++slot)
    if (const Endpoint* at = map.at(static_cast<std::uint16_t>(slot)))
      require(is_host(at->host) && at->port != 0);
  const Advice advice = read_advice(reply, kFrom);
  const bool elsewhere = advice.kind == Advice::Kind::moved || advice.kind == Advice::Kind::ask;
  require(!elsewhere || (is_host(advice.to.host) && advice.to.port != 0));
}

std::vector<std::string> read(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> replies;
  ReplyReader reader(kLimits);
  for (std::size_t at = 0; at < bytes.size() && reader.feed(bytes.substr(at, piece)); at += piece)
    while (const Reply* reply = reader.next()) {
      const Size size = size_of(*reply);
      require(size.elements <= kLimits.elements && size.bytes <= kLimits.bytes);
      check_map(*reply);
      replies.push_back(shown(*reply));
    }
  return replies;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 2000) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  require(read(bytes, 1u + data[0]) == read(bytes, 1));
  return 0;
}
