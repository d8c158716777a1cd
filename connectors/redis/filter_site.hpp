// Module sites: a whole filter or window as a key of a server that has loaded the Sluice module.
//
// Cost     One command per 512 keys and per time: keys that follow each other with the same time
//          share a command, and all commands of a request are sent together, in one round trip.
//          23 bytes per key on the wire, and some 120 per command.
// Errors   What is not a verdict, and what becomes of it:
//            there is no such key (it was deleted or evicted, or the server flushed): it is made
//              again, empty, and has another incarnation, so that FilterSlices doubts it. In the
//              middle of a request: the outcome is `late`, or the incarnation another one. The
//              incarnation is when the key was made, and is asked for last: a filter that is lost
//              and made again while it answers is noticed with the same request.
//            an item that is pending, because somebody claims it (SLUICE.CLAIM): Answer::none
//            an item for which the module has no memory: Answer::none; known items are duplicates
//              all the same. If the server has none it refuses the command, and all are `none`.
//            a time that the server does not take, since it is a window or more ahead of its clock:
//              Answer::refused for the items of that command
//            any other error: Answer::none for the items of that command
//            an answer of the wrong shape: the outcome is `late`.
//          A replica that takes over, and a server that loads an old snapshot, have the
//          incarnation, but not the writes since: their keys are let through once more, unnoticed.
// Avoid    a server that evicts keys (maxmemory-policy allkeys-*).
// Layout   With a layout (layout.hpp) the key is the layout's, and may move: whoever finds that it is
//          missing, or another one than before, reads the layout again (Whereabouts), and goes on
//          at the new place with what was not carried out at the old one. A slice is made again
//          only if the layout still says that it is there.
// Format   The key `{tag}:filter:1`, tag_of(name, site, sites), or slice_key(). Its items are digests: 16 bytes, lo
//          and then hi, each little-endian. Changing this takes another name. The key is made by
//          SLUICE.RESERVE, by whoever comes first: if another has been faster, his options count.
//          Then PERSIST: its window goes by the times of events, and must outlast a stream that
//          stands still. It stays until somebody deletes it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/redis/client.hpp"
#include "sluice/cluster/filter_site.hpp"

namespace sluice::redis {

// Who knows where slices are.
class Whereabouts {
 public:
  virtual ~Whereabouts() = default;
  // The key of a slice. Empty: nobody may ask it now, and why() says why.
  virtual const std::string& key(std::uint32_t site) const = 0;
  virtual std::string_view why(std::uint32_t site) const = 0;
  // Asks again where they are. False: nobody knows now, so a slice that is missing is not to be
  // made.
  virtual bool look_again() = 0;
};

class ModuleSite final : public cluster::FilterSite {
 public:
  // Of one command, as the module looks at its memory after so many. A longer request is cut, so
  // that no other client waits for all of it.
  static constexpr std::size_t kMostItems = 512;

  struct Place {
    std::string name;  // of all slices together
    std::uint32_t site = 0, sites = 1;
    // Words of SLUICE.RESERVE after the key: {"WINDOW", "10m", "RATE", "2k/s"}. RATE, EXPECT and
    // MEMORY are those of one site.
    std::vector<std::string> options = {};
    // Null: the slice stays where its name says. It must outlive the site.
    Whereabouts* whereabouts = nullptr;
  };

  // Throws BadParameters. Connects when it is used; the producer's sites share its client.
  ModuleSite(std::shared_ptr<Client> client, const Place& place);

  void send(const Request& request) override;
  // If there is no such key, it makes it, and then asks once more.
  cluster::Reply receive(std::span<cluster::Answer> answers) override;

  std::string_view problem() const noexcept override { return problem_; }

  const std::string& key() const noexcept { return key_; }

 private:
  void send_request();
  void add_keys(Commands& commands, std::size_t begin, std::size_t count);
  Outcome await();
  void make();
  bool is_gone() const;
  bool has_lost() const;
  bool find_again();
  bool keep_carried_out();
  cluster::Reply take(Outcome outcome, std::span<cluster::Answer> answers);
  void take_command(const Reply& reply, std::span<cluster::Answer> answers);
  cluster::Reply refused(Outcome outcome);
  cluster::Answer answer_of(const Reply& reply);
  std::string endpoint() const;
  void explain(const std::string& error);

  std::shared_ptr<Client> client_;
  std::vector<std::string> options_;
  Whereabouts* whereabouts_;
  std::uint32_t site_;
  std::string key_;
  std::uint16_t slot_;
  std::uint64_t incarnation_ = 0;  // that it had last

  Request request_;
  std::size_t from_ = 0;               // the first key that is on its way: others are answered
  std::vector<std::uint32_t> counts_;  // of keys on their way, by command
  Client::Ticket ticket_ = 0;
  std::vector<Reply> replies_;
  std::vector<cluster::Answer> taken_;
  bool malformed_ = false;
  std::string problem_;
};

// A producer's connections to all slices of a filter. Throws BadParameters.
std::vector<std::unique_ptr<cluster::FilterSite>> module_sites(
    const std::shared_ptr<Client>& client, std::uint32_t sites,
    const std::vector<std::string>& options);

}  // namespace sluice::redis
