// simdjson by itself over a file of JSON lines: the limit of `sluice dedup --json`. It runs in a
// process of its own (`probe-json FILE`). Blocks are read into one padded buffer, which costs less
// than a file as a whole, whose pages would all be new.
#include <fcntl.h>
#include <simdjson.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "options.hpp"
#include "sluice/base/error.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kBlock = 1 << 20;

void parse_block(simdjson::dom::parser& parser, const char* data, std::size_t size) {
  simdjson::dom::document_stream documents;
  if (parser.parse_many(data, size, kBlock).get(documents) != simdjson::SUCCESS)
    throw Error("simdjson cannot parse this file");
  for (auto document : documents)
    if (document.error() != simdjson::SUCCESS) throw Error("a record is not JSON");
}

}  // namespace

void parse_json(const char* file) {
  const int from = open(file, O_RDONLY);
  if (from < 0) throw IoError(std::string("cannot open ") + file, errno);
  simdjson::dom::parser parser;
  std::vector<char> block(kBlock + simdjson::SIMDJSON_PADDING);
  std::size_t held = 0;  // of a record whose end has not been read
  for (;;) {
    const ssize_t got = read(from, block.data() + held, kBlock - held);
    if (got < 0) throw IoError(std::string("cannot read ") + file, errno);
    if (got == 0) break;
    held += static_cast<std::size_t>(got);
    const void* end = memrchr(block.data(), '\n', held);
    if (end == nullptr) throw Error("a record is longer than a block");
    const auto size = static_cast<std::size_t>(static_cast<const char*>(end) - block.data()) + 1;
    parse_block(parser, block.data(), size);
    held -= size;
    std::memmove(block.data(), block.data() + size, held);
  }
  close(from);
}

}  // namespace sluice::bench
