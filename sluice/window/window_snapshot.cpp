// Windows as bytes, and back.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t kMostWritten = std::uint64_t{1} << 62;
// A state is as large as it is.
constexpr const char* kLargerBudget = "free some of the resource, or give it a larger budget";

}  // namespace

void Window::encode_header(Encoder& to) const {
  to.u8(static_cast<std::uint8_t>(params().spec.kind));
  to.varint(params().spec.size);
  to.u8(static_cast<std::uint8_t>(params().anchor));
  to.u8(static_cast<std::uint8_t>(params().growth));
  to.u8(static_cast<std::uint8_t>(params().listed | listed() << 1 |
                                  blueprint_->generations_asked << 2 |
                                  params().memory.has_value() << 3));
  to.f64(params().fpr);
  to.varint(params().keys.value_or(0));
  to.varint(params().generations.value_or(0));
  to.varint(params().max_ahead.value_or(0));
  if (params().memory) to.varint(*params().memory);
  to.varint(params().filter.size());
  to.bytes(std::as_bytes(std::span(params().filter)));
  clock_.encode(to);
  to.varint(listed() ? static_cast<std::uint64_t>(tick_) : left_);
  clock_.encode_keys(to);
  if (listed())
    list_.encode(to, oldest(clock_.now()), newest_stamp());
  else
    growth_->encode_header(to);
}

void Window::encode_payload(Encoder& to) const {
  if (!listed()) growth_->encode_payload(to);
}

Counted<Window::Blueprint> Window::blueprint_of_snapshot(const Params& params,
                                                         const MemoryResource& memory) {
  try {
    return find_blueprint(params, memory);
  } catch (const BadParameters& error) {
    throw CorruptSnapshot(error.what());
  }
}

// What the resource can give to this window, with what the window holds already.
std::uint64_t Window::budget_beside_others() const noexcept {
  const std::uint64_t taken = memory().taken(), others = taken - std::min(taken, bytes());
  return memory().budget() - std::min(memory().budget(), others);
}

// What best_stage() of Growth would make; 0: it makes one as large as the first.
std::uint64_t Window::bytes_of_stage(const std::string& filter, std::uint64_t keys, double fpr,
                                     unsigned generations) {
  for (; fpr < 1; fpr *= Growth::kWorseBy) {
    try {
      return forecast_filter(filter, {.keys = keys, .fpr = fpr, .generations = generations}).bytes;
    } catch (const BadParameters&) {
      // Not to be had: the next one may be.
    }
  }
  return 0;
}

// Later stages are made as the state says: what could not be made, or would take far more than the
// stages that it brings, is refused now. Like is compared with like: a stage may be planned for a far
// worse error than the first one, or than the next, and is then so much smaller. So the two tell how
// large others *of its error* may be. As they will be, they may be larger, by what a better error
// costs, or as large as a list may ask for.
void Window::check_stages_to_come(std::uint64_t payload_bytes) const {
  constexpr std::uint64_t kMostTimes = 16, kAlwaysAllowed = std::uint64_t{16} << 20;
  constexpr std::uint64_t kErrorTimes = 32;  // an error of 1e-300 instead of 1e-10
  constexpr double kWorstFpr = 0.5;
  const auto check = [&](std::uint64_t bytes, std::uint64_t times, std::uint64_t allowed) {
    if (bytes > allowed && bytes / times > payload_bytes)
      throw CorruptSnapshot(
          fmt::format("the window asks for stages of {} bytes and brings {} bytes of them: was its "
                      "filter '{}' changed?",
                      bytes, payload_bytes, params().filter));
  };
  const Growth::Plan& plan = blueprint_->plan;
  const std::uint64_t most_keys = growth_->most_keys_of_next();
  const double next = growth_->fpr_of_next();
  const double like = std::max(plan.first_fpr(), std::min(growth_->worst_planned_fpr(), kWorstFpr));
  check(blueprint_->table.bytes, kErrorTimes * kMostTimes, kMostListedPlan);
  check_budget(budget_beside_others(), kLargerBudget);
  const std::string next_filter = successor_text(params());
  check(bytes_of_stage(params().filter, plan.keys, like, generations()), kMostTimes,
        kAlwaysAllowed);
  if (!plan.may_grow) return;
  check(bytes_of_stage(next_filter, most_keys, next, generations()), kErrorTimes * kMostTimes,
        kMostListedPlan);
  check(bytes_of_stage(next_filter, most_keys, std::max(next, like), generations()), kMostTimes,
        kAlwaysAllowed);
}

Window Window::decode(Decoder& header, Decoder& payload, MemoryResource& memory) {
  memory.check_largest_block();
  const std::uint64_t payload_bytes = payload.remaining();
  const auto refuse = [](bool wrong) {
    if (wrong) throw CorruptSnapshot("no window has these fields");
  };
  Params params;
  const std::uint8_t kind = header.u8();
  params.spec.size = header.varint();
  const std::uint8_t anchor = header.u8();
  const std::uint8_t growth = header.u8();
  const std::uint8_t form = header.u8();
  refuse(kind < 1 || kind > 3 || anchor > 1 || growth < 1 || growth > 2 || form > 15 ||
         (form & 3) == 2);
  params.listed = (form & 1) != 0;
  const bool listed = (form & 2) != 0;
  params.spec.kind = static_cast<WindowSpec::Kind>(kind);
  params.anchor = static_cast<Anchor>(anchor);
  params.growth = static_cast<Growth::By>(growth);
  params.fpr = header.f64();
  if (const std::uint64_t keys = header.varint()) params.keys = keys;
  const std::uint64_t generations = header.varint();
  refuse(generations > std::numeric_limits<unsigned>::max());
  params.generations = static_cast<unsigned>(generations);
  if (const std::uint64_t ahead = header.varint()) params.max_ahead = ahead;
  if ((form & 8) != 0) params.memory = header.varint();
  const std::uint64_t length = header.varint();
  refuse(length > kMostFilterText || length > header.remaining());
  params.filter.resize(length);
  header.bytes(std::as_writable_bytes(std::span(params.filter)));
  Params asked = params;
  if ((form & 4) == 0) asked.generations.reset();
  Window window(blueprint_of_snapshot(asked, memory), memory);
  if (params.listed && !window.params().listed)
    throw CorruptSnapshot(fmt::format(
        "no list becomes a table like that of the window, which would take {} bytes, or "
        "is followed by one of another size: was its filter '{}' changed?",
        window.blueprint_->table.bytes, params.filter));
  window.clock_.decode(header);
  const std::uint64_t position = header.varint();
  window.clock_.decode_keys(header);
  refuse(window.generations() != params.generations);
  refuse((params.spec.kind == WindowSpec::Kind::landmark) != (params.generations == 0u));
  if (listed) {
    refuse(position > (params.spec.by_time() ? 0 : kMostWritten));
    window.tick_ = static_cast<std::int64_t>(position);
    window.list_.decode(header, window.blueprint_->most_listed, window.newest_stamp());
    refuse(payload.remaining() != 0 || !window.list_is_sound());
    window.check_budget(window.budget_beside_others(), kLargerBudget);
    return window;
  }
  Owned<Growth> growth_of = window.make_growth();
  growth_of->decode(header, payload, window.generations());
  window.growth_.reset(growth_of.release());
  refuse(name_of(window.growth_->newest().kind()) != window.filter_name());
  refuse(!params.spec.by_time() && window.clock_.started());
  window.left_ = position;
  refuse(window.left_ == 0 || window.left_ > window.generation_size());
  window.check_stages_to_come(payload_bytes);
  // Between two calls the present tick is that of now.
  if (params.spec.by_time() && window.clock_.started())
    window.set_tick(window.tick_of(window.clock_.now()));
  return window;
}

}  // namespace sluice
