#include "connectors/redis/filter_site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sluice/base/error.hpp"
#include "sluice/cluster/slice_map.hpp"

namespace sluice::redis {
namespace {

using cluster::Answer;
using cluster::FilterVerb;

// How the module begins what it says of a time (read_at in apps/redis/commands.cpp).
constexpr std::string_view kRefusedTime = "ERR AT ";

// What it says of a key that is missing, and the server of one that is something else.
constexpr std::string_view kNoKey = "ERR there is no such key", kOtherType = "WRONGTYPE";

// How often the place of a slice is looked for again, in one request.
constexpr unsigned kMostMoves = 4;

// What the module answers for an item.
constexpr std::int64_t kNo = 0, kYes = 1;

bool says_gone(const Reply& reply) {
  return reply.is(Reply::Kind::error) &&
         (reply.text.starts_with(kNoKey) || reply.text.starts_with(kOtherType));
}

std::array<char, 16> item_of(const Digest& digest) {
  std::array<char, 16> bytes;
  for (unsigned i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(digest.lo >> (8 * i) & 0xff);
    bytes[8 + i] = static_cast<char>(digest.hi >> (8 * i) & 0xff);
  }
  return bytes;
}

}  // namespace

ModuleSite::ModuleSite(std::shared_ptr<Client> client, const Place& place)
    : client_(std::move(client)),
      options_(place.options),
      whereabouts_(place.whereabouts),
      site_(place.site) {
  if (place.sites > cluster::SliceMap::kMostSites || place.site >= place.sites)
    throw BadParameters(fmt::format("filter slices: site {} of {}; give one of at most {}",
                                    place.site, place.sites, cluster::SliceMap::kMostSites));
  key_ = whereabouts_ != nullptr
             ? whereabouts_->key(site_)
             : fmt::format("{{{}}}:filter:1", tag_of(place.name, place.site, place.sites));
  slot_ = slot_of(key_);
}

// One command.
void ModuleSite::add_keys(Commands& commands, std::size_t begin, std::size_t count) {
  const bool timed = !request_.times_ms.empty();
  const fmt::format_int at(timed ? request_.times_ms[begin] : 0);
  const std::size_t option = timed ? 2 : 0;
  const auto add_at = [&] {
    if (!timed) return;
    commands.word("AT");
    commands.word({at.data(), at.size()});
  };
  if (request_.verb == FilterVerb::may_contain) {
    commands.begin(2 + count + option);
    commands.word(timed ? "SLUICE.EXISTS" : "SLUICE.MEXISTS");
    commands.word(key_);
  } else {
    commands.begin(4 + count + option);
    for (const std::string_view word :
         {std::string_view("SLUICE.INSERT"), std::string_view(key_), std::string_view("NOCREATE")})
      commands.word(word);
    add_at();
    commands.word("ITEMS");
  }
  for (const Digest& digest : request_.digests.subspan(begin, count)) {
    const auto item = item_of(digest);
    commands.word({item.data(), item.size()});
  }
  if (request_.verb == FilterVerb::may_contain) add_at();
  counts_.push_back(static_cast<std::uint32_t>(count));
}

void ModuleSite::send(const Request& request) {
  request_ = request;
  from_ = 0;
  taken_.assign(request.digests.size(), Answer::none);
  send_request();
}

// From the first key that has no answer.
void ModuleSite::send_request() {
  counts_.clear();
  ticket_ = 0;
  if (whereabouts_ != nullptr) {
    key_ = whereabouts_->key(site_);
    if (key_.empty()) return;
    slot_ = slot_of(key_);
  }
  const auto& times = request_.times_ms;
  // EXISTS takes one item.
  const std::size_t most =
      request_.verb == FilterVerb::may_contain && !times.empty() ? 1 : kMostItems;
  Commands commands;
  for (std::size_t begin = from_; begin < request_.digests.size();) {
    std::size_t end = std::min(begin + most, request_.digests.size());
    if (!times.empty())
      end = static_cast<std::size_t>(
          std::find_if(times.begin() + static_cast<std::ptrdiff_t>(begin),
                       times.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](std::int64_t time) { return time != times[begin]; }) -
          times.begin());
    add_keys(commands, begin, end - begin);
    begin = end;
  }
  commands.add({"SLUICE.INFO", key_, "made_ms"});
  ticket_ = client_->send(slot_, std::move(commands));
}

// Nobody may ask a slice that is on its way.
Outcome ModuleSite::await() {
  if (ticket_ != 0) return client_->receive(ticket_, replies_);
  replies_.assign(1, {});
  return Outcome::failed;
}

std::string ModuleSite::endpoint() const {
  const Endpoint* const at = client_->map().at(slot_);
  return at == nullptr ? std::string("a server") : text_of(*at);
}

void ModuleSite::explain(const std::string& error) {
  constexpr std::string_view kUnknown = "ERR unknown command";
  if (error.starts_with(kUnknown))
    problem_ = fmt::format(
        "{}: this server has no filters: load the module, sluice.so, in its configuration",
        endpoint());
  else
    problem_ = fmt::format("{}: {}: {}", endpoint(), key_, error);
}

// Of several producers one makes it, and for the others it exists. What is wrong with the server or
// the options is wrong for all of them.
void ModuleSite::make() {
  Commands commands;
  commands.begin(2 + options_.size());
  commands.word("SLUICE.RESERVE");
  commands.word(key_);
  for (const std::string& option : options_) commands.word(option);
  commands.add({"PERSIST", key_});
  std::vector<Reply> made;
  client_->receive(client_->send(slot_, std::move(commands)), made);
  const bool exists = made[0].text.find("exists already") != std::string::npos;
  if (made[0].is(Reply::Kind::error) && !exists) explain(made[0].text);
}

// The server is there, and the slice is not: something else has its name, or nothing.
bool ModuleSite::is_gone() const {
  return std::ranges::any_of(replies_, says_gone);
}

bool ModuleSite::has_lost() const {
  return std::ranges::any_of(replies_,
                             [](const Reply& reply) { return reply.is(Reply::Kind::nil); });
}

// What was carried out before it went stays with it. False: that cannot be told.
bool ModuleSite::keep_carried_out() {
  if (has_lost()) return false;
  // Asking a key that is missing is no error.
  if (request_.verb == FilterVerb::may_contain) return true;
  malformed_ = false;
  std::size_t at = from_, command = 0;
  for (; command < counts_.size() && !says_gone(replies_[command]); ++command) {
    take_command(replies_[command], std::span(taken_).subspan(at, counts_[command]));
    at += counts_[command];
  }
  // Those after the first that found nothing have found nothing either.
  for (; command < counts_.size(); ++command)
    if (!says_gone(replies_[command])) return false;
  from_ = at;
  return !malformed_;
}

// Whether to ask again: it is elsewhere, or was made here.
bool ModuleSite::find_again() {
  const std::string before = key_;
  if (!keep_carried_out()) return false;
  const bool known = whereabouts_->look_again();
  if (whereabouts_->key(site_) != before) return true;
  // What was remembered in the first half of a request is lost with it.
  if (!known || (from_ > 0 && request_.verb != FilterVerb::may_contain)) return false;
  make();
  // If it has moved meanwhile, what was made is nobody's.
  whereabouts_->look_again();
  return true;
}

cluster::Reply ModuleSite::receive(std::span<Answer> answers) {
  problem_.clear();
  Outcome outcome = await();
  if (whereabouts_ != nullptr) {
    // A slice moves once in a while, and not while its move is being followed.
    for (unsigned moves = 0; moves < kMostMoves && is_gone() && find_again(); ++moves) {
      send_request();
      outcome = await();
    }
  } else if (replies_.back().is(Reply::Kind::error) &&
             (outcome == Outcome::failed || request_.verb == FilterVerb::may_contain)) {
    // The server is there and has no such filter. Only if nothing was carried out the rest may be
    // sent again: what was remembered already would be a duplicate of itself.
    make();
    send_request();
    outcome = await();
  }
  cluster::Reply reply = take(outcome, answers);
  if (whereabouts_ == nullptr || !reply.answered()) return reply;
  if (incarnation_ != 0 && reply.incarnation != incarnation_) {
    // Another one under its name. If the layout has changed, it is the wrong one.
    const std::string before = key_;
    whereabouts_->look_again();
    if (whereabouts_->key(site_) != before) {
      send(Request(request_));
      reply = take(await(), answers);
    }
  }
  if (reply.answered()) incarnation_ = reply.incarnation;
  return reply;
}

// Without an answer. What has one, because it was carried out before the slice moved, keeps it.
cluster::Reply ModuleSite::refused(Outcome outcome) {
  if (problem_.empty() && ticket_ == 0) problem_ = whereabouts_->why(site_);
  if (problem_.empty()) problem_ = client_->problem();
  if (from_ == 0) return {outcome == Outcome::failed ? Outcome::failed : Outcome::late, 0};
  if (outcome == Outcome::failed && incarnation_ != 0) return {Outcome::answered, incarnation_};
  return {Outcome::late, 0};
}

cluster::Reply ModuleSite::take(Outcome outcome, std::span<Answer> answers) {
  const Reply& made = replies_.back();
  const auto give = [&] {
    std::copy_n(taken_.begin(), std::min(answers.size(), taken_.size()), answers.begin());
  };
  if (!made.is(Reply::Kind::integer) || has_lost()) {
    // What make() has said comes first.
    if (problem_.empty() && made.is(Reply::Kind::error)) explain(made.text);
    const cluster::Reply reply = refused(outcome);
    if (reply.answered()) give();
    return reply;
  }
  problem_.clear();
  malformed_ = false;
  for (std::size_t i = 0, at = from_; i < counts_.size(); at += counts_[i++])
    take_command(replies_[i], std::span(taken_).subspan(at, counts_[i]));
  if (malformed_) {
    problem_ = fmt::format("{}: {}: an answer that the module does not give", endpoint(), key_);
    return {Outcome::late, 0};
  }
  give();
  return {Outcome::answered, static_cast<std::uint64_t>(made.integer)};
}

void ModuleSite::take_command(const Reply& reply, std::span<Answer> answers) {
  if (reply.is(Reply::Kind::error)) {
    explain(reply.text);
    const bool by_time = reply.text.starts_with(kRefusedTime);
    std::ranges::fill(answers, by_time ? Answer::refused : Answer::none);
    return;
  }
  // EXISTS answers without an array.
  const bool one = request_.verb == FilterVerb::may_contain && !request_.times_ms.empty();
  const std::span<const Reply> all = one ? std::span(&reply, 1) : std::span(reply.elements);
  if (all.size() != answers.size()) {
    malformed_ = true;
    return;
  }
  std::ranges::transform(all, answers.begin(), [&](const Reply& each) { return answer_of(each); });
}

// ADD and its kind answer 1 for what is distinct, EXISTS and its kind for what is known.
Answer ModuleSite::answer_of(const Reply& reply) {
  constexpr std::int64_t kPending = 2;
  if (reply.is(Reply::Kind::error)) {
    explain(reply.text);
    return Answer::none;
  }
  if (!reply.is(Reply::Kind::integer) || reply.integer < kNo || reply.integer > kPending) {
    malformed_ = true;
    return Answer::none;
  }
  if (reply.integer == kPending) {
    problem_ = fmt::format("{}: {}: an item is claimed by somebody", endpoint(), key_);
    return Answer::none;
  }
  const bool asked = request_.verb == FilterVerb::may_contain;
  return (reply.integer == kYes) == asked ? Answer::duplicate : Answer::distinct;
}

std::vector<std::unique_ptr<cluster::FilterSite>> module_sites(
    const std::shared_ptr<Client>& client, std::uint32_t sites,
    const std::vector<std::string>& options) {
  std::vector<std::unique_ptr<cluster::FilterSite>> all;
  for (std::uint32_t site = 0; site < sites; ++site)
    all.push_back(std::make_unique<ModuleSite>(
        client, ModuleSite::Place{client->address().name, site, sites, options}));
  return all;
}

}  // namespace sluice::redis
