// What a server answers, read from bytes that may be anything: hiredis parses them, within limits
// that are checked before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace sluice::redis {

struct Reply {
  enum class Kind : std::uint8_t { nil, status, error, text, integer, array };
  Kind kind = Kind::nil;
  std::int64_t integer = 0;
  std::string text = {};  // of a status and an error, too
  std::vector<Reply> elements = {};

  bool is(Kind which) const noexcept { return kind == which; }
};

struct ReplyLimits {
  // Of one reply, all its texts together. CLUSTER SLOTS of a thousand nodes has less than 1 MiB.
  std::size_t bytes = std::size_t{16} << 20;
  // Of one reply, arrays within arrays included. An element takes 80 bytes here, and 4 on the wire.
  std::size_t elements = std::size_t{1} << 17;
};

class ReplyReader {
 public:
  explicit ReplyReader(ReplyLimits limits = {});
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  // What has been received, in pieces that are small against the limits. False: no more can be
  // read; see error().
  bool feed(std::string_view bytes);
  // The next reply that is complete. Null: there is none yet, or no more can be read. It is valid
  // until the next call.
  Reply* next();
  // Why no more can be read; empty while it can.
  const std::string& error() const noexcept { return error_; }

 private:
  struct Functions;
  friend struct Functions;

  ReplyLimits limits_;
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
  Reply root_;
  // Of the reply in the making.
  std::size_t elements_ = 0, bytes_ = 0;
  std::string error_;
};

}  // namespace sluice::redis
