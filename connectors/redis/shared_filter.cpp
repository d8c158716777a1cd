#include "connectors/redis/shared_filter.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "sluice/base/quantity.hpp"

namespace sluice::redis {
namespace {

using cluster::Layout;

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

SharedFilter::SharedFilter(const Address& address, const Settings& settings, Options options)
    : options_(std::move(options)),
      client_(std::make_shared<Client>(address, settings)),
      store_(client_) {
  patience_.again = [this](std::string_view problem) { return again(problem); };
  open();
  check_servers();
  check_slices();
}

void SharedFilter::open() {
  const std::string& name = client_->address().name;
  std::optional<Layout> found = store_.read();
  if (!found) throw NoFilter(fmt::format("there is no filter '{}'", name));
  if (found->dropped) throw NoFilter(fmt::format("the filter '{}' was dropped", name));
  if (found->kind != Layout::Kind::filters)
    throw ServersFailed(fmt::format("the filter '{}' has {}, which only programs can use so far",
                                    name, name_of(found->kind)));
  adopt(std::move(*found));
}

// With other servers, or in another order, slices would be looked for where they are not.
void SharedFilter::check_servers() const {
  const Address& address = client_->address();
  const unsigned given = address.cluster ? 0 : static_cast<unsigned>(address.endpoints.size());
  if (given == layout_.servers) return;
  const auto as = [](unsigned servers) {
    return servers == 0 ? std::string("a cluster") : counted(servers, "server");
  };
  throw ServersFailed(
      fmt::format("the filter '{}' was made on {}, and the address is one of {}: give {}",
                  address.name, as(layout_.servers), as(given),
                  layout_.servers == 0 ? "redis+cluster:// and some of its nodes"
                                       : "redis:// and all of its servers, in the same order"));
}

// Takes what was asked of a slice: its window, when it was made, and that it is to stay. False: it
// does not answer.
bool SharedFilter::check_slice(std::uint32_t site, const std::vector<Reply>& replies,
                               Outcome outcome) {
  const Reply &window = replies[0], &made = replies[1];
  const std::string at = client_->map().at(slot_of(keys_[site])) == nullptr
                             ? std::string("a server")
                             : text_of(*client_->map().at(slot_of(keys_[site])));
  if (outcome == Outcome::answered && window.is(Reply::Kind::text) &&
      made.is(Reply::Kind::integer)) {
    const std::string expected = window_text(layout_);
    if (window.text != expected)
      throw ServersFailed(fmt::format(
          "{}: slice {} of '{}' remembers '{}', and the layout says '{}': somebody has changed {}; "
          "drop the filter and make it anew",
          at, site, client_->address().name, window.text, expected, keys_[site]));
    if (layout_.slices[site].incarnation != static_cast<std::uint64_t>(made.integer))
      made_anew_.emplace_back(site, made.integer);
    return true;
  }
  const bool missing =
      window.is(Reply::Kind::error) && window.text.starts_with("ERR there is no such key");
  if (missing) {
    options_.notice(fmt::format(
        "{}: slice {} is missing, and is made anew: repeats of what it had remembered pass once "
        "more",
        at, site));
    made_anew_.emplace_back(site, now_ms());
    return true;
  }
  if (window.is(Reply::Kind::error) && window.text.starts_with("ERR unknown command"))
    throw ServersFailed(fmt::format(
        "{}: this server has no filters: load the module, sluice.so, in its configuration", at));
  if (window.is(Reply::Kind::error))
    throw ServersFailed(fmt::format("{}: {}: {}", at, keys_[site], window.text));
  return false;
}

// All slices are asked before any is waited for.
void SharedFilter::check_slices() {
  std::vector<std::uint32_t> open;
  for (std::uint32_t site = 0; site < layout_.sites(); ++site)
    if (!keys_[site].empty()) open.push_back(site);
  while (!open.empty()) {
    std::vector<Client::Ticket> tickets;
    for (const std::uint32_t site : open) {
      Commands commands;
      commands.add({"SLUICE.INFO", keys_[site], "window"});
      commands.add({"SLUICE.INFO", keys_[site], "made_ms"});
      // Whoever made it may have died before he said so.
      commands.add({"PERSIST", keys_[site]});
      tickets.push_back(client_->send(slot_of(keys_[site]), std::move(commands)));
    }
    std::vector<std::uint32_t> unanswered;
    std::string problem;
    for (std::size_t i = 0; i < open.size(); ++i) {
      std::vector<Reply> replies;
      const Outcome outcome = client_->receive(tickets[i], replies);
      if (check_slice(open[i], replies, outcome)) continue;
      unanswered.push_back(open[i]);
      problem = client_->problem();
    }
    open = std::move(unanswered);
    if (open.empty() || options_.when_unreachable == Unreachable::wait) {
      if (!open.empty() && !options_.again(problem)) throw ServersFailed(problem);
      continue;
    }
    options_.notice(fmt::format("{} of {} do not answer: {}", open.size(),
                                counted(layout_.sites(), "slice"), problem));
    break;
  }
}

void SharedFilter::adopt(Layout layout) {
  layout_ = std::move(layout);
  keys_.resize(layout_.sites());
  for (std::uint32_t site = 0; site < layout_.sites(); ++site) {
    const bool away = layout_.move && layout_.move->site == site;
    keys_[site] = away ? std::string() : slice_key(client_->address().name, layout_, site);
  }
}

void SharedFilter::end(std::string why) {
  over_ = std::move(why);
  for (std::string& key : keys_) key.clear();
}

std::string_view SharedFilter::why(std::uint32_t) const {
  if (!over_.empty()) return over_;
  return "the slice is being moved to another server";
}

// False: the stream cannot go on.
bool SharedFilter::compare(const Layout& found) {
  const std::string& name = client_->address().name;
  if (found.dropped || found.identity != layout_.identity) {
    end(
        fmt::format("the filter '{}' was dropped{}: what was read until now is judged and written; "
                    "run again from there with the filter that is to be used",
                    name, found.dropped ? "" : ", and another one was made under its name"));
    return false;
  }
  if (!found.same_filter(layout_)) {
    end(fmt::format("the layout of '{}' has changed in what must not change: {} is damaged", name,
                    store_.key()));
    return false;
  }
  if (found.version > layout_.version) {
    std::string moved;
    for (std::uint32_t site = 0; site < layout_.sites(); ++site)
      if (found.slices[site] != layout_.slices[site])
        moved += fmt::format("{}{}", moved.empty() ? "" : ", ", site);
    const std::string text = found.move ? fmt::format("slice {} is on its way", found.move->site)
                             : moved.empty() ? std::string("no slice has moved")
                                             : fmt::format("moved slices: {}", moved);
    options_.notice(fmt::format("goes on with version {} of the layout: {}", found.version, text));
    adopt(found);
  }
  return true;
}

bool SharedFilter::look_again() {
  if (!over_.empty()) return false;
  try {
    std::optional<Layout> found = store_.read();
    // The servers have lost it, or an older one came back with a replica that took over.
    const bool lost = !found || (found->identity == layout_.identity && !found->dropped &&
                                 found->version < layout_.version);
    if (lost && (found ? store_.replace(*found, layout_) : store_.create(layout_)))
      options_.notice("the servers had lost the filter's layout: it was put back");
    if (lost) found = store_.read();
    unknown_.clear();
    return found && compare(*found);
  } catch (const cluster::CorruptLayout& error) {
    end(error.what());
  } catch (const ServersFailed& error) {
    unknown_ = error.what();
  }
  return false;
}

bool SharedFilter::again(std::string_view problem) {
  if (!over_.empty()) return false;
  waited_ = true;
  const bool more = options_.again(problem);
  if (more) look_again();
  return more && over_.empty();
}

cluster::SharedJudge& SharedFilter::start(std::optional<std::uint64_t> max_ahead) {
  const bool waits = options_.when_unreachable == Unreachable::wait;
  std::vector<std::unique_ptr<cluster::FilterSite>> sites;
  for (std::uint32_t site = 0; site < layout_.sites(); ++site) {
    std::unique_ptr<cluster::FilterSite> made =
        std::make_unique<ModuleSite>(client_, ModuleSite::Place{.name = client_->address().name,
                                                                .site = site,
                                                                .sites = layout_.sites(),
                                                                .options = layout_.words,
                                                                .whereabouts = this});
    if (waits) made = std::make_unique<cluster::PatientSite>(std::move(made), patience_);
    sites.push_back(std::move(made));
  }
  cluster::FilterSlices::Options options{.window = layout_.window,
                                         .rule = model::FaultRule::distinct(1)};
  options.slack = std::max(options.slack, layout_.slack);
  if (options_.when_unreachable == Unreachable::duplicate)
    options.rule = model::FaultRule::duplicate();
  slices_ = std::make_unique<cluster::FilterSlices>(options, std::move(sites));
  for (const auto& [site, when_ms] : made_anew_) slices_->distrust(site, when_ms);
  judge_ = std::make_unique<cluster::SharedJudge>(
      cluster::SharedJudge::Options{.hasher = Hasher(layout_.hash, layout_.secret),
                                    .window = layout_.window,
                                    .slack = layout_.slack,
                                    .max_ahead = max_ahead},
      [this](std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
             std::span<Verdict> verdicts) { observe(digests, times_ms, verdicts); });
  return *judge_;
}

// What was sent before the filter went has its verdicts: only then the stream ends.
void SharedFilter::observe(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
                           std::span<Verdict> verdicts) {
  if (!over_.empty()) throw ServersFailed(over_);
  slices_->observe(digests, times_ms, verdicts);
  if (std::exchange(waited_, false) && over_.empty()) options_.notice("all slices answer again");
}

SharedFilter::Report SharedFilter::report() const {
  Report report;
  report.unsure = patience_.unsure;
  report.bytes_sent = client_->bytes_sent();
  report.bytes_received = client_->bytes_received();
  if (!slices_) return report;
  report.traffic = slices_->traffic();
  report.ruled = slices_->ruled();
  report.problem = slices_->problem();
  return report;
}

}  // namespace sluice::redis
