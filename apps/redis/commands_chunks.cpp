// Commands that carry keys to other servers, in chunks.
#include <fmt/format.h>

#include "apps/redis/chunks.hpp"
#include "apps/redis/commands.hpp"
#include "apps/redis/effects.hpp"
#include "apps/redis/words.hpp"
#include "sluice/base/error.hpp"

namespace sluice::server {
namespace {

void answer(Reply& reply, std::int64_t cursor, std::span<const std::byte> chunk) {
  reply.array(2);
  reply.integer(cursor);
  reply.text({reinterpret_cast<const char*>(chunk.data()), chunk.size()});
}

}  // namespace

// As RedisBloom's clients expect it: the last reply has cursor 0 and no bytes.
void scandump(const Call& call) {
  const std::int64_t cursor = whole_number("cursor", call.words[2], 0, Cursor::kMost);
  Place& place = call.host.open(1, Host::Access::read);
  // All chunks are where they go: whatever has become of the key since.
  if (Cursor::of(cursor).all) return answer(call.reply, 0, {});
  const Entry& entry = existing(place, "SCAN 0 TYPE sluiceflt lists those that are there");
  Cutter cutter(entry, place.expiry_ms().value_or(0));
  const Dumps::Next next = dumps().next(cutter, entry, cursor, call.host.now_ms());
  answer(call.reply, next.cursor, next.chunk);
}

void loadchunk(const Call& call) {
  call.host.redact(3);
  const std::int64_t cursor = whole_number("cursor", call.words[2], 0, Cursor::kMost);
  const auto bytes = std::as_bytes(std::span(call.words[3]));
  const Chunk chunk = Chunk::read(bytes);
  if (chunk.cursor() != cursor)
    throw BadParameters(fmt::format(
        "this chunk came with cursor {}, not {}: give each chunk with the cursor of its own reply",
        chunk.cursor(), cursor));
  Place& place = call.host.open(1, Host::Access::write);
  if (chunk.offset == 0) check_room(call.host, chunk.total);
  load_chunk(call.host, place, 1, chunk, call.host.now_ms());
  call.reply.status("OK");
}

}  // namespace sluice::server
