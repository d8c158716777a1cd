#include "dedup_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "dedup_room.hpp"
#include "dedup_window.hpp"
#include "places.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/memory_resource.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::cli {
namespace {

[[noreturn]] void refuse_size(const DedupRequest& request) {
  const bool by_count = request.window && !request.window->spec.by_time();
  const std::string flag = by_count ? "--window" : request.rate ? "--rate" : "--expect";
  const std::uint64_t budget = default_memory().budget();
  const std::string most = budget == MemoryResource::kNoBudget
                               ? std::string()
                               : fmt::format(" ({} for this process)", format_size(budget));
  throw NoMemory(fmt::format(
      "filter '{}' would need more memory than there is{}: give a smaller {} or a larger "
      "--fpr, or use a machine with more memory",
      request.window ? request.window->filter : request.filter, most, flag));
}

AnyFilter make_asked(const DedupRequest& request) {
  try {
    return request.window ? make_window(request) : make_filter(request.filter, request.wish);
  } catch (const NoMemory&) {
    refuse_size(request);
  }
}

[[noreturn]] void refuse_state(const DedupRequest& request, std::string_view what,
                               const std::string& in_file, const std::string& asked) {
  throw BadParameters(
      fmt::format("--state '{}' was made with {} '{}', and this run asks for '{}': run with the "
                  "same, or start "
                  "another state file",
                  request.state, what, in_file, asked));
}

Snapshot fresh(const DedupRequest& request) {
  const Secret secret = request.seed ? Secret::from_seed(*request.seed) : Secret::random();
  const HashKind hash = request.untrusted_keys ? HashKind::highway : HashKind::xxh3;
  return {Hasher(hash, secret), make_asked(request), labels_of(request.options)};
}

std::string describe_filter(const AnyFilter& filter) {
  return fmt::format("{},{}", name_of(filter.kind()), filter.settings().text());
}

// The state must remember what this run asks to remember.
void check_window_agreement(const DedupRequest& request, const AnyFilter& filter) {
  const auto text = [](const std::optional<Window::Params>& params) {
    return params ? describe(params->spec, params->anchor == Anchor::refreshed) +
                        (params->anchor == Anchor::refreshed ? ", refreshed" : "")
                  : std::string("everything");
  };
  const Window* held = filter.window();
  const auto in_file = held == nullptr ? std::nullopt : std::optional(held->params());
  if (text(in_file) != text(request.window))
    refuse_state(request, "a memory of", text(in_file), text(request.window));
}

// The filter as the request describes it; what the request leaves out is taken from the state. So a
// run need not repeat the flags that made its state, and messages name only flags that it gave.
AnyFilter make_completed(const DedupRequest& request, const AnyFilter& held) {
  const std::string_view name = name_of(held.kind());
  const std::string_view asked =
      request.filter_named ? std::string_view(request.filter_asked) : name;
  const std::size_t comma = std::min(asked.find(','), asked.size());
  try {
    make_filter(asked, request.wish);  // reports a wrong request as such
  } catch (const NoMemory&) {
    refuse_size(request);
  }
  if (asked.substr(0, comma) != name)
    refuse_state(request, "filter", describe_filter(held), request.filter_asked);
  Settings settings = Settings::parse(asked.substr(std::min(comma + 1, asked.size())));
  const auto given = [&settings](std::string_view parameter) {
    return std::ranges::any_of(settings.pairs(),
                               [&](const auto& pair) { return pair.first == parameter; });
  };
  const Settings of_held = held.settings();
  for (const auto& [parameter, value] : of_held.pairs()) {
    if (given(parameter)) continue;
    if (parameter == "keys" && request.wish.keys)
      settings.add(parameter, *request.wish.keys);
    else if (parameter == "fpr" && request.fpr_given)
      settings.add(parameter, request.wish.fpr);
    else
      settings.add(parameter, value);
  }
  return filter_named(name).make(request.wish, settings, default_memory());
}

DedupRequest completed(DedupRequest request, const Window& held) {
  Window::Params& window = *request.window;
  if (!request.filter_named) window.filter = held.params().filter;
  if (!request.fpr_given) window.fpr = held.params().fpr;
  if (!window.keys) window.keys = held.params().keys;
  if (!window.generations) window.generations = held.params().generations;
  if (!window.memory) window.memory = held.params().memory;
  return request;
}

void check_memory(const DedupRequest& request, const AnyFilter& filter) {
  check_window_agreement(request, filter);
  if (!request.filter_given) return;
  const std::string held = describe_filter(filter);
  const std::string wanted =
      describe_filter(request.window ? make_window(completed(request, *filter.window()))
                                     : make_completed(request, filter));
  if (wanted != held) refuse_state(request, "filter", held, wanted);
}

// Whether the state was planned with the same --memory when its files were compressed, and these are not,
// or the other way round. Throws BadParameters if it has no room for these.
bool agrees_with_other_room(const DedupRequest& request, const AnyFilter& filter) {
  for (const std::uint64_t room : kRooms) {
    std::shared_ptr<WindowBudget> budget;
    try {
      const DedupRequest other = request.with_room(room);
      check_memory(other, filter);
      budget = other.unpack.budget;
    } catch (const BadParameters&) {
      continue;
    }
    if (room >= request.room_needed) {
      *request.unpack.budget = *budget;  // the inputs that are open have it, too
      return true;
    }
    throw BadParameters(fmt::format(
        "--state '{}' was made without room for the compressed files of this run, which need {} of "
        "--memory {}: unpack inputs on the way (zstdcat FILE | sluice ...), write outputs that are "
        "not compressed, or start another state file",
        request.state, exact_size(request.room_needed), exact_size(*request.memory)));
  }
  return false;
}

// A state works only with the same record format, key, hash and filter.
void check_agreement(const DedupRequest& request, const Snapshot& state) {
  const Labels asked = labels_of(request.options);
  if (state.labels != asked)
    refuse_state(request, "records and keys", text_of(state.labels), text_of(asked));
  if (request.untrusted_keys && state.hasher.kind() != HashKind::highway)
    throw BadParameters(
        fmt::format("--state '{}' was made without --untrusted-keys: drop the flag, or "
                    "start another state file",
                    request.state));
  if (request.seed && !(state.hasher.secret() == Secret::from_seed(*request.seed)))
    throw BadParameters(
        fmt::format("--state '{}' was not made with --seed {}: drop the flag, or start "
                    "another state file",
                    request.state, *request.seed));
  try {
    check_memory(request, state.filter);
  } catch (const BadParameters&) {
    if (!request.with_room || !agrees_with_other_room(request, state.filter)) throw;
  }
}

// Checked before anything is opened: opening an output would create the file of the state.
void check_state_apart(const DedupRequest& request) {
  for (const auto& [flag, output] :
       {std::pair("--output", request.output), std::pair("--duplicates", request.duplicates),
        std::pair("--late-output", request.late_output)})
    for (const std::filesystem::path& state : files_of_state(request.state))
      if (!is_standard_output(output) &&
          (same_place(output, state) || same_place(output + ".cut", state)))
        throw BadParameters(
            fmt::format("{} '{}'{} is where --state is kept: write to another file", flag, output,
                        same_place(output, state) ? "" : ", or what is cut off it (FILE.cut),"));
}

// Checked now, and not when the run has done its work and wants to save it.
void check_can_be_kept(const DedupRequest& request, const Snapshot& state) {
  try {
    check_snapshot(state.hasher, state.filter, state.labels);
  } catch (const BadParameters& error) {
    throw BadParameters(fmt::format("--state '{}' cannot hold the --key of this run: {}",
                                    request.state, error.what()));
  }
}

}  // namespace

Snapshot load_or_make(const DedupRequest& request, std::optional<StateFile>& file) {
  // Its keys are hashed as the layout says, and nothing is remembered here.
  if (request.shared) {
    const cluster::Layout& layout = request.shared->layout();
    return {Hasher(layout.hash, layout.secret), make_filter("none", {}), {}};
  }
  if (request.state.empty()) return fresh(request);
  check_state_apart(request);
  file.emplace(request.state);
  if (!request.state_previous && !file->exists()) {
    Snapshot state = fresh(request);
    check_can_be_kept(request, state);
    return state;
  }
  Snapshot state =
      request.state_previous ? file->load_previous(is_positions) : file->load(is_positions);
  check_agreement(request, state);
  return state;
}

Positions positions_of(const DedupRequest& request, const Sections& sections) {
  try {
    return positions_in(sections);
  } catch (const CorruptSnapshot& error) {
    throw CorruptSnapshot(
        fmt::format("state file '{}' is refused: {}", request.state, error.what()));
  }
}

Snapshot checked_to_forget(const DedupRequest& request, Snapshot state) {
  if (request.forget.empty() || state.filter.can_forget()) return state;
  const Window* window = state.filter.window();
  throw BadParameters(fmt::format(
      "--forget '{}': filter '{}' cannot forget keys: use one that can, such as {}", request.forget,
      window == nullptr ? name_of(state.filter.kind()) : window->filter_name(),
      window == nullptr ? "--filter growing" : "--filter cohort"));
}

}  // namespace sluice::cli
