// Layouts of filters, where all producers find them: the key `{NAME}:layout:1` of the server that
// has its slot, with the bytes of cluster::encode().
//
// Of several who make a layout one wins (SET NX), and a layout takes the place of another one only
// if that is still the one that it was made from (a script compares): versions never go back. What
// is unclear because an answer was lost is cleared up by reading again.
//
// Slices stand in keys with the identity of the filter and the version in which they came there, so
// that nobody with an old layout writes to a new one, or to another filter of the name:
// `{NAME:SITE:TURN}:filter:1:IDENTITY.VERSION`, and :cells:1: for cell slices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "connectors/redis/client.hpp"
#include "sluice/cluster/layout.hpp"

namespace sluice::redis {

// Servers that cannot be reached, or refuse: the message says which and why.
class ServersFailed : public Error {
 public:
  using Error::Error;
};

std::string layout_key(std::string_view name);
std::string slice_key(std::string_view name, const cluster::Layout& layout, std::uint32_t site);
// Where a slice is while it is moved: beside its key.
std::string moving_key(const std::string& key);

class LayoutStore {
 public:
  // A dropped layout stays for so long, to tell producers that were not there.
  static constexpr std::chrono::hours kDroppedFor{24 * 7};

  // Of the filter that the client's address names.
  explicit LayoutStore(std::shared_ptr<Client> client);

  // Nothing: there is none. Throws ServersFailed, and cluster::CorruptLayout.
  std::optional<cluster::Layout> read();
  // False: there is one already. Throws ServersFailed.
  bool create(const cluster::Layout& layout);
  // `to` takes the place of `from`, which was read. False: it is another one by now. One that is
  // dropped goes by itself later. Throws ServersFailed.
  bool replace(const cluster::Layout& from, const cluster::Layout& to);

  const std::string& key() const noexcept { return key_; }

 private:
  std::optional<Reply> ask(Commands commands);
  bool has_become(const cluster::Layout& layout);
  std::string where() const;

  std::shared_ptr<Client> client_;
  std::string key_;
  std::uint16_t slot_;
};

}  // namespace sluice::redis
