#include "apps/redis/entry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/snapshot/clone.hpp"
#include "sluice/window/window.hpp"

namespace sluice::server {
namespace {

constexpr std::string_view kSection = "server";
constexpr std::uint8_t kSectionVersion = 1;
constexpr std::size_t kTogether = 512;

constexpr Nanoseconds nanoseconds(std::int64_t ms) noexcept {
  return ms * 1'000'000;
}

// A judge writes its fates down, or is told them, for one call.
class Told {
 public:
  Told(Judge* judge, Fates& fates) noexcept : judge_(judge) {
    if (judge_ != nullptr) judge_->set_fates(&fates);
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  ~Told() {
    if (judge_ != nullptr) judge_->set_fates(nullptr);
  }

 private:
  Judge* judge_;
};

JudgeOptions options_of(std::uint64_t audit, bool claims) {
  JudgeOptions options{.forget_early = true, .meters = false};
  if (audit != 0) options.audit = Audit::Params{.sample = audit};
  // The server's own limit may be lower, and replicas do not judge it again.
  if (claims) options.claims = Claims::kMostClaims;
  return options;
}

}  // namespace

Entry::Entry(const Hasher& hasher, AnyFilter filter)
    : hasher_(hasher), filter_(std::move(filter)) {}

Entry::~Entry() = default;

Entry::Pointer Entry::make(const Making& making, MemoryResource& memory) {
  Pointer entry =
      make_owned<Entry>(memory, Hasher(making.hash, making.secret), making.make(memory));
  entry->made_ms_ = making.made_ms;
  entry->set_last(making.made_ms);
  entry->expansion_ = making.expansion;
  if (making.audit != 0) entry->need_judge(options_of(making.audit, false));
  return entry;
}

void Entry::need_judge(const JudgeOptions& options) {
  judge_.reset(make_owned<Judge>(filter_.memory(), hasher_, std::move(filter_), options).release());
}

void Entry::DeleteJudge::operator()(Judge* judge) const noexcept {
  ResourceDelete<Judge>{&judge->filter().memory()}(judge);
}

std::uint32_t Entry::next_change() noexcept {
  static std::atomic<std::uint32_t> last = 0;
  return ++last;
}

Nanoseconds Entry::advance(std::int64_t now_ms) noexcept {
  set_last(std::max(last_ms(), now_ms));
  changes_ = next_change();
  return nanoseconds(last_ms());
}

// Whether or not there is memory for the items: replicas that are told of none move the same. A window that
// doubts its times moves with its items.
void Entry::pass_time(Nanoseconds time, bool of_events) {
  Window& own = *filter().window();
  const bool ahead = !own.clock().started() || time > own.clock().now();
  if (!of_events || (ahead && own.limits().believe_all())) own.arrive(time);
}

// Rounded up: what is asked later is asked at an earlier time rather than at a later one, and expires later.
void Entry::note_lag(bool of_events) noexcept {
  if (!of_events || !by_time()) {
    set_lag(0);
    return;
  }
  constexpr std::int64_t kMs = 1'000'000;
  const EventClock& clock = window()->clock();
  const std::int64_t behind = clock.started() ? last_ms() - clock.now() / kMs : 0;
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(behind, 0)) + 1;
  const auto width = static_cast<unsigned>(std::bit_width(value));
  unsigned shift = width > kMantissaBits ? width - kMantissaBits : 0;
  std::uint64_t mantissa = value >> shift;
  if (mantissa << shift != value) ++mantissa;
  if (mantissa >> kMantissaBits != 0) {
    mantissa >>= 1;
    ++shift;
  }
  set_lag((std::uint64_t{shift} << kMantissaBits | mantissa) & kLagMask);
}

// An empty window does not know yet what its times will be.
bool Entry::by_arrival() const noexcept {
  return by_time() && !by_events() && window()->clock().started();
}

std::int64_t Entry::lag_ms() const noexcept {
  if (!by_events()) return 0;
  const std::uint64_t mantissa = lag() & ((1u << kMantissaBits) - 1);
  return static_cast<std::int64_t>((mantissa << (lag() >> kMantissaBits)) - 1);
}

Nanoseconds Entry::present(std::int64_t now_ms) const noexcept {
  return nanoseconds(std::max(std::max(now_ms, last_ms()) - lag_ms(), -kFarthestMs));
}

std::size_t Entry::judge(std::span<const Digest> digests, const When& when,
                         std::span<Verdict> verdicts, std::span<bool> late, Fates& fates) {
  const Told told(judge_.get(), fates);
  const Nanoseconds now = advance(when.now_ms);
  std::ranges::fill(late, false);
  std::array<Nanoseconds, kTogether> times;
  if (when.at_ms) times.fill(nanoseconds(*when.at_ms));
  const bool timed = when.at_ms && by_time();
  if (by_time()) pass_time(timed ? times[0] : now, timed);
  note_lag(timed);
  std::size_t judged = 0;
  while (judged < digests.size()) {
    const std::size_t count = std::min(digests.size() - judged, kTogether);
    const auto part = digests.subspan(judged, count);
    const auto answers = verdicts.subspan(judged, count);
    const auto behind = late.subspan(judged, count);
    const auto whens =
        timed ? std::span<const Nanoseconds>(times).first(count) : std::span<const Nanoseconds>();
    std::size_t done = 0;
    if (judge_) {
      done = judge_->judge(
          {.digests = part, .verdicts = answers, .times = whens, .late = behind, .now = now});
    } else if (timed) {
      done = filter().window()->judge(part, whens, answers, behind);
    } else {
      done = filter().observe(part, answers);
    }
    judged += done;
    if (done < count) break;
  }
  return judged;
}

bool Entry::make_room() {
  if (window() == nullptr || !window()->used_up() || !filter().window()->forget_oldest())
    return false;
  changes_ = next_change();
  return true;
}

void Entry::ask(std::span<const Digest> digests, const When& when,
                std::span<Verdict> verdicts) const {
  const Nanoseconds now = nanoseconds(std::max(when.now_ms, last_ms()));
  if (when.at_ms && by_time())
    std::ranges::transform(digests, verdicts.begin(), [&](const Digest& digest) {
      return window()->peek(digest, nanoseconds(*when.at_ms));
    });
  else if (by_time())
    window()->may_contain(digests, verdicts, present(when.now_ms));
  else
    filter().may_contain(digests, verdicts);
  if (claimed() == 0) return;
  const Claims& claims = *judge_->claims();
  const Nanoseconds then = when.at_ms ? nanoseconds(*when.at_ms) : present(when.now_ms);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (claims.state_of(digests[i], now) == Claims::State::pending) verdicts[i] = Verdict::pending;
    // It waits for memory, and leaves the window all the same.
    if (const auto delivered = claims.delivered(digests[i]);
        delivered && !has_left(*delivered, then))
      verdicts[i] = Verdict::duplicate;
  }
}

bool Entry::has_left(const KeyMemory::When& delivered, Nanoseconds now) const {
  return by_time() && now > delivered.time &&
         static_cast<std::uint64_t>(now - delivered.time) >= window()->params().spec.size;
}

std::optional<std::uint64_t> Entry::age_of(const Digest& digest, std::int64_t now_ms) const {
  const auto age = window()->age_of(digest, present(now_ms));
  if (!age || !by_time()) return age;
  return *age / static_cast<std::uint64_t>(nanoseconds(1));
}

void Entry::forget(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   std::int64_t now_ms, Fates& fates) {
  const Told told(judge_.get(), fates);
  const Nanoseconds now = advance(now_ms);
  if (by_arrival()) filter().window()->arrive(now);
  if (judge_) return judge_->forget(digests, verdicts);
  std::ranges::transform(digests, verdicts.begin(), [this](const Digest& digest) {
    return filter().forget(digest) ? Verdict::duplicate : Verdict::distinct;
  });
}

void Entry::merge(const Entry& other, std::int64_t now_ms) {
  if (judge_ || other.judge_)
    throw BadParameters(
        "a key with claims or an audit cannot be merged: what they know is of one stream");
  const AnyFilter& from = other.filter();
  // Its error comes first: advice about the hash would not help.
  if (filter().can_merge() && filter().kind() == from.kind() &&
      (hasher_.kind() != other.hasher_.kind() || hasher_.secret() != other.hasher_.secret()))
    throw BadParameters(
        "these keys hash items under different secrets: reserve both with one SEED, or make one a "
        "COPY of the other");
  filter().merge(from);
  advance(now_ms);
}

Judge& Entry::claiming() {
  if (!judge_) need_judge(options_of(0, true));
  judge_->need_claims(Claims::kMostClaims);
  return *judge_;
}

ClaimAnswer Entry::claim(const Claim& claim, std::uint64_t most, Fates& fates) {
  Judge& judge = claiming();
  const Told told(&judge, fates);
  if (claimed() >= most) check_room_for(claim);
  const Nanoseconds now = advance(claim.when.now_ms);
  Claims::Request request{
      .key = claim.item, .token = claim.token, .now = now, .lease = nanoseconds(claim.lease_ms)};
  const bool timed = claim.when.at_ms && by_time();
  if (timed) request.event_time = nanoseconds(*claim.when.at_ms);
  // The first item of a key tells what its times are; claims do not move the window.
  if (timed && !window()->clock().started()) note_lag(true);
  const ClaimAnswer answer = judge.claim(request);
  // A repeat that restarts its window is an arrival, as one of judge().
  if (answer == ClaimAnswer::duplicate && by_time() &&
      window()->params().anchor == Anchor::refreshed)
    note_lag(timed);
  return answer;
}

// Items that are known need no room.
void Entry::check_room_for(const Claim& claim) const {
  Verdict verdict{};
  ask({&claim.item, 1}, claim.when, {&verdict, 1});
  if (verdict == Verdict::distinct)
    throw ClaimsFull(fmt::format(
        "{} items of this key are pending, and no more may be (sluice.claims-limit): confirm or "
        "release some, or wait until their leases end",
        format_count(claimed())));
}

ConfirmAnswer Entry::confirm(const Claim& claim, Fates& fates) {
  const Nanoseconds now = advance(claim.when.now_ms);
  const bool timed = claim.when.at_ms && by_time();
  if (claimed() == 0) {
    // Nothing is to be confirmed, and no memory is taken for that.
    if (!timed && by_arrival()) filter().window()->arrive(now);
    Verdict verdict{};
    ask({&claim.item, 1}, claim.when, {&verdict, 1});
    return verdict == Verdict::duplicate ? ConfirmAnswer::already : ConfirmAnswer::refused;
  }
  const Told told(judge_.get(), fates);
  Claims::Request request{.key = claim.item, .token = claim.token, .now = now};
  if (timed || by_events())
    request.event_time = timed ? nanoseconds(*claim.when.at_ms) : present(claim.when.now_ms);
  const ConfirmAnswer answer = judge_->confirm(request);
  if (timed || by_events()) note_lag(true);
  return answer;
}

bool Entry::release(const Claim& claim) {
  const Nanoseconds now = advance(claim.when.now_ms);
  return claimed() > 0 && judge_->release({.key = claim.item, .token = claim.token, .now = now});
}

std::optional<Nanoseconds> Entry::claimed_at(const Claim& claim) const {
  const Nanoseconds now = nanoseconds(std::max(claim.when.now_ms, last_ms()));
  if (claimed() == 0 || !judge_->claims()->is_held_by(claim.item, claim.token, now))
    return std::nullopt;
  return judge_->event_time_of(claim.item);
}

void Entry::tend(std::int64_t now_ms, std::size_t most, Fates& fates) {
  const Nanoseconds now = advance(now_ms);
  const Told told(judge_.get(), fates);
  if (claimed() > 0) judge_->tend(now, most);
}

std::uint64_t Entry::claimed() const noexcept {
  return judge_ && judge_->claims() != nullptr ? judge_->claims()->size() : 0;
}

std::uint64_t Entry::pending(std::int64_t now_ms) const noexcept {
  return claimed() == 0 ? 0 : judge_->claims()->pending(nanoseconds(std::max(now_ms, last_ms())));
}

std::uint64_t Entry::bytes() const noexcept {
  const std::uint64_t own = filter().memory().usable(this, sizeof(Entry), alignof(Entry));
  return own + (judge_ ? judge_->bytes() +
                             filter().memory().usable(judge_.get(), sizeof(Judge), alignof(Judge))
                       : filter().bytes());
}

std::uint64_t Entry::blocks() const noexcept {
  return 2 + filter().bytes() / HostMemory::kLargest;
}

std::optional<std::int64_t> Entry::due_ms(std::int64_t lease_ms) const {
  if (!by_time()) return std::nullopt;
  constexpr std::int64_t kMs = 1'000'000;
  const Window& own = *window();
  const auto length = static_cast<double>(own.params().spec.size) / kMs;
  const std::int64_t step =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(own.generation_size()) / kMs);
  const auto kept = static_cast<std::int64_t>(length * (1 + own.slack())) + 1;
  // Events may be ahead of us.
  const std::int64_t last =
      std::max(last_ms(), own.clock().started() ? own.clock().now() / kMs : 0);
  // Whole generations: it would move with each event otherwise.
  const std::int64_t lag = lag_ms() / step * step;
  const std::int64_t due = std::min((last / step + 1) * step + kept + lag, kFarthestMs);
  return claimed() == 0 ? due : std::max({due, expires_ms_, last_ms() + lease_ms});
}

Entry::Pointer Entry::clone(MemoryResource& memory) const {
  if (!judge_) {
    Pointer copy = make_owned<Entry>(memory, hasher_, sluice::clone(filter(), memory));
    copy->made_ms_ = made_ms_;
    copy->last_and_lag_ = last_and_lag_;
    copy->expires_ms_ = expires_ms_;
    copy->expansion_ = expansion_;
    return copy;
  }
  Encoded encoded(*this);
  std::vector<std::byte> all(encoded.size());
  encoded.next(all);
  BytesDecoder from(all);
  return load(from, memory, made_ms_);
}

Section Entry::section() const {
  BytesEncoder to;
  to.u8(kSectionVersion);
  to.u64(static_cast<std::uint64_t>(made_ms_));
  to.u64(static_cast<std::uint64_t>(last_ms()));
  to.u64(static_cast<std::uint64_t>(expires_ms_));
  to.varint(lag());
  if (expansion_ != 0) to.u16(expansion_);
  return {std::string(kSection), false, to.take()};
}

void Entry::read(const Section& section) {
  BytesDecoder from(section.bytes);
  if (from.u8() != kSectionVersion)
    throw CorruptSnapshot("its section 'server' was written by a newer sluice");
  const auto time = [&] {
    const std::uint64_t ms = from.u64();
    if (ms > kFarthestMs) throw CorruptSnapshot("its section 'server' has an impossible time");
    return static_cast<std::int64_t>(ms);
  };
  made_ms_ = time();
  set_last(time());
  expires_ms_ = time();
  const std::uint64_t lag = from.varint();
  // A lag is of the mantissa and the shift that note_lag() makes, and no longer than two times are apart.
  constexpr std::uint64_t kMostShift = 30;
  const std::uint64_t mantissa = lag & ((1u << kMantissaBits) - 1);
  if (lag > kLagMask || (lag != 0 && !by_time()) || (lag != 0 && mantissa == 0) ||
      lag >> kMantissaBits > kMostShift)
    throw CorruptSnapshot("its section 'server' has an impossible lag of events");
  set_lag(lag);
  if (from.remaining() == 0) return;
  expansion_ = from.u16();
  if (expansion_ == 0) throw CorruptSnapshot("its section 'server' has an EXPANSION of 0");
  if (from.remaining() != 0) throw CorruptSnapshot("its section 'server' is too long");
}

Entry::Pointer Entry::load(Decoder& from, MemoryResource& memory, std::int64_t now_ms) {
  Snapshot snapshot = read_snapshot(from, memory, [](std::string_view name) {
    return name == kSection || Judge::understands(name);
  });
  Pointer entry = make_owned<Entry>(memory, snapshot.hasher, std::move(snapshot.filter));
  entry->made_ms_ = now_ms;
  entry->set_last(now_ms);
  for (const Section& section : snapshot.sections)
    if (section.name == kSection) entry->read(section);
  JudgeOptions options = Judge::options_for(snapshot.sections);
  options.forget_early = true;
  options.meters = false;
  if (!options.audit && options.claims == 0) return entry;
  entry->need_judge(options);
  for (const Section& section : snapshot.sections)
    if (Judge::understands(section.name)) entry->judge_->resume(section);
  return entry;
}

Encoded::Encoded(const Entry& entry)
    : sections_([&] {
        Sections sections{entry.section()};
        if (entry.judge_) std::ranges::move(entry.judge_->sections(), std::back_inserter(sections));
        return sections;
      }()),
      pull_(entry.hasher_, entry.filter(), {}, sections_) {}

}  // namespace sluice::server
