#include "repro/dautrich/parameters.hpp"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "repro/papers.hpp"
#include "sluice/base/error.hpp"

namespace sluice::repro::dautrich {

const Published& published() {
  static const Published all = Published::parse(published_csv("dautrich"));
  return all;
}

std::uint64_t whole_from(const Context& context, const char* name, unsigned least) {
  const unsigned value = context.whole(name);
  if (value < least || value > (1u << 26))
    throw BadParameters(fmt::format("--set {}: give a number from {} to 2^26", name, least));
  return value;
}

std::string window_name(std::uint64_t window) {
  if (window < 16 || !std::has_single_bit(window)) return std::to_string(window);
  return fmt::format("2^{}", std::countr_zero(window));
}

Windows windows_of(const Context& context, const char* even, const char* large) {
  return {whole_from(context, even, 16), whole_from(context, large, 16)};
}

Stream packets(const Context& context, const Length& length) {
  if (!context.input().empty()) return stream_of_file(context.input(), length, context.seed());
  return packet_stream({.active = context.whole("senders"),
                        .pace = context.number("pace"),
                        .packets = context.number("packets"),
                        .addresses = context.whole("addresses"),
                        .skew = context.number("skew")},
                       length, context.seed());
}

}  // namespace sluice::repro::dautrich
