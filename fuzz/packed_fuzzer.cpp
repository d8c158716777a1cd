// Compressed inputs: whatever the bytes are, unpacking ends, and gives the same contents and the same
// verdict in pieces of any size, in memory that does not grow with them.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "connectors/files/packing.hpp"
#include "fuzz/records.hpp"

namespace {

using namespace sluice;

// A bomb is cut here: what follows takes time, not memory.
constexpr std::size_t kMostContents = std::size_t{1} << 22;
constexpr std::uint64_t kWindow = std::uint64_t{1} << 23;

struct Result {
  std::string contents;
  bool whole = false;
  std::optional<PackingFault::Kind> fault;
};

Result unpack(Packing packing, std::span<const char> bytes, std::size_t in, std::size_t out) {
  const auto unpacker = Unpacker::make(packing, kWindow);
  Result result;
  std::vector<char> buffer(out);
  while (!bytes.empty()) {
    std::span<const char> piece = bytes.first(std::min(in, bytes.size()));
    bytes = bytes.subspan(piece.size());
    Unpacker::Step step;
    do {
      step = unpacker->unpack(piece, buffer);
      fuzzing::require(step.used <= piece.size() && step.made <= out);
      piece = piece.subspan(step.used);
      result.contents.append(buffer.data(), step.made);
      if (result.contents.size() > kMostContents) return result;
      if (step.fault) {
        result.fault = step.fault->kind;
        return result;
      }
      fuzzing::require(step.used > 0 || step.made > 0 || piece.empty());
    } while (step.made == out || !piece.empty());
  }
  result.whole = unpacker->between();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const char> bytes(reinterpret_cast<const char*>(data), size);
  const Packing packing = packing_of({bytes.data(), bytes.size()});
  if (packing == Packing::none) return 0;
  zstd_window({bytes.data(), bytes.size()});
  const Result whole = unpack(packing, bytes, std::max<std::size_t>(size, 1), 1 << 16);
  const Result pieces = unpack(packing, bytes, 13, 1000);
  if (whole.contents.size() > kMostContents || pieces.contents.size() > kMostContents) return 0;
  // zstd needs no window for a frame that it has as a whole, and does not look at it then.
  const auto window = std::optional(PackingFault::Kind::window);
  if (whole.fault == window || pieces.fault == window) return 0;
  // zstd decodes a frame that it has as a whole in one pass, and only then notices contents that are longer than
  // the frame states. So damage that it finds there need not be found in pieces; the reverse is a failure.
  const bool in_one_pass = packing == Packing::zstd && whole.fault;
  fuzzing::require(in_one_pass || (whole.whole == pieces.whole && whole.fault == pieces.fault));
  // A decoder may find damage before it has given all that comes before.
  if (!whole.fault) fuzzing::require(whole.contents == pieces.contents);
  return 0;
}
