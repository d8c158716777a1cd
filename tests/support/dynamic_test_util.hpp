// What the tests of dynamic filters share.
#pragma once

#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"

namespace sluice::dynamic_test {

// The paper's: m = 1280, k = 7, c = 133.
inline constexpr const char* kPaper = "bytes=160,probes=7,keys=133,fpr=0.0098";
inline constexpr const char* kPaperCounted = "bytes=640,probes=7,keys=133,fpr=0.0098,forget=yes";

inline Dynamic make(const std::string& settings) {
  return Dynamic::make(Dynamic::Params::from({}, Settings::parse(settings)));
}

struct Bytes {
  std::vector<std::byte> header, payload;
};

inline Bytes encoded(const Dynamic& filter) {
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  return {header.take(), payload.take()};
}

inline Dynamic decoded(const Bytes& bytes) {
  BytesDecoder header(bytes.header), payload(bytes.payload);
  return Dynamic::decode(header, payload);
}

inline std::vector<DynamicPiece> pieces_of(const Dynamic& filter) {
  const Bytes bytes = encoded(filter);
  BytesDecoder header(bytes.header), payload(bytes.payload);
  DynamicPieces reader(header, payload);
  std::vector<DynamicPiece> pieces;
  while (reader.left() > 0) pieces.push_back(reader.next());
  return pieces;
}

inline std::vector<std::uint64_t> keys_of(const Dynamic& filter) {
  std::vector<std::uint64_t> keys;
  for (const DynamicPiece& piece : pieces_of(filter)) keys.push_back(piece.keys);
  return keys;
}

// Writes that many keys, and returns them.
inline std::vector<Digest> write(Dynamic& filter, std::uint64_t seed, std::size_t keys) {
  SplitMix64 random(seed);
  std::vector<Digest> written;
  while (written.size() < keys) {
    const Digest digest{random.next(), random.next()};
    if (filter.observe(digest) == Verdict::distinct) written.push_back(digest);
  }
  return written;
}

}  // namespace sluice::dynamic_test
