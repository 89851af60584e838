// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/platform.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
// clang-format off
#include <simgrid/version.h>  // after s4u.hpp, whose macros it needs
#if SIMGRID_VERSION < 40000
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#endif
// clang-format on
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

// SimGrid's clock, an exported variable that outlives its engines: without a
// reset, times would be as imprecise as the total length of all runs of the
// process. Weak: if a version of SimGrid does not have it, its clock is not
// reset.
extern "C" {
extern double weir_simgrid_clock __asm__("_ZN7simgrid6kernel10EngineImpl4now_E")
    __attribute__((weak));
}

namespace weir::sim {
namespace {

namespace sg4 = simgrid::s4u;
using simgrid::kernel::timer::Timer;

// The few functions whose names changed after 3.32.
#if SIMGRID_VERSION < 40000
sg4::NetZone* MakeZone() { return sg4::create_empty_zone("weir"); }
sg4::Host* MakeHost(sg4::NetZone* zone, const std::string& name) {
  return zone->create_host(name, 1.0)->seal();
}
sg4::Link* MakeLink(sg4::NetZone* zone, const std::string& name,
                    double bytes_per_second) {
  return zone->create_link(name, bytes_per_second);
}
template <typename Callback>
void SetLatency(sg4::NetZone* zone, Callback callback) {
  zone->get_network_model()->set_lat_factor_cb(callback);
}
#else
sg4::NetZone* MakeZone() {
  return sg4::Engine::get_instance()->get_netzone_root()->add_netzone_empty(
      "weir");
}
sg4::Host* MakeHost(sg4::NetZone* zone, const std::string& name) {
  return zone->add_host(name, 1.0)->seal();
}
sg4::Link* MakeLink(sg4::NetZone* zone, const std::string& name,
                    double bytes_per_second) {
  return zone->add_link(name, bytes_per_second);
}
template <typename Callback>
void SetLatency(sg4::NetZone* zone, Callback callback) {
  zone->set_latency_factor_cb(callback);
}
#endif

// Must be called before the first link exists, once per process.
void ConfigureSimGrid() {
  LinkNoDetach();
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:1e30");
#if SIMGRID_VERSION < 40000
  sg4::Engine::set_config("surf/precision:1e-12");
#else
  sg4::Engine::set_config("precision/timing:1e-12");
#endif
}

std::unique_ptr<sg4::Engine> MakeEngine() {
  struct sigaction before;
  sigaction(SIGINT, nullptr, &before);
  char name[] = "weir", log[] = "--log=root.thres:critical";
  char* argv[] = {name, log, nullptr};
  int argc = 2;
  auto engine = std::make_unique<sg4::Engine>(&argc, argv);
  sigaction(SIGINT, &before, nullptr);  // SimGrid installs its own handler
  static const bool configured = (ConfigureSimGrid(), true);
  (void)configured;
  return engine;
}

// Requires: no flow is in flight and no alarm is set.
void RestartClock() {
  if (&weir_simgrid_clock != nullptr) weir_simgrid_clock = 0;
}

}  // namespace

// SimGrid can neither remove links nor add any once it has run, but it can
// change a link's bandwidth and add routes. So links are numbered as current
// flows use them, routes stay for the next network, and when there is no room
// left, everything is built again.
//
// SimGrid shares a link in inverse proportion to the sum of link latencies on
// each route. An extra link with a latency of 1 on every route, far faster than
// any real rate, makes the shares equal; the callback removes the latency.
class Platform::Impl {
 public:
  Impl() {
    current = this;
    static const bool connected = (Connect(), true);
    (void)connected;
  }
  ~Impl() { current = nullptr; }

  void SetNetwork(std::span<const scenarios::Link> links,
                  std::span<const GpuPair> pairs) {
    network_ = links;
    pairs_ = pairs;
    prepared_ = false;
    RestartClock();
  }

  void StartFlow(int32_t pair, double bytes, int32_t flow, double seconds) {
    if (!prepared_) Prepare();
    if (num_flows_++ == 0) offset_ = seconds - sg4::Engine::get_clock();
    Ends& ends = ends_[pair];
    if (ends.from == nullptr) ends = EndsOf(pairs_[pair].route);
    int32_t slot;
    if (free_slots_.empty()) {
      slot = static_cast<int32_t>(flows_.size());
      flows_.push_back({});
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    sg4::CommPtr comm = sg4::Comm::sendto_init();
    flows_[slot] = {comm, flow};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): user data of SimGrid.
    comm->set_data(reinterpret_cast<void*>(static_cast<intptr_t>(slot) + 1));
    comm->set_payload_size(  // a flow of 0 bytes would never end
        static_cast<uint64_t>(std::max(std::ceil(kUnits * bytes), 1.0)));
    comm->set_source(ends.from);
    comm->set_destination(ends.to);
    if (comm->get_state() == sg4::Activity::State::STARTED) return;
#if SIMGRID_VERSION < 33500
    comm->vetoable_start();
#else
    comm->start();
#endif
  }

  void SetAlarm(double seconds) {
    if (alarm_ != nullptr && seconds == alarm_seconds_) return;
    StopAlarm();
    alarm_seconds_ = seconds;
    alarm_ = Timer::set(std::max(seconds - offset_, sg4::Engine::get_clock()),
                        [this] {
                          alarm_ = nullptr;
                          listener_->AlarmRang();
                        });
  }

  void StopAlarm() {
    if (alarm_ != nullptr) alarm_->remove();
    alarm_ = nullptr;
  }

  void Run(Listener* listener) {
    listener_ = listener;
    engine_->run();
  }

  int num_flows() const { return num_flows_; }

 private:
  struct Ends {
    sg4::Host* from = nullptr;
    sg4::Host* to = nullptr;
  };
  struct Flow {
    sg4::CommPtr comm;
    int32_t flow;
  };

  // SimGrid has one signal per process, which outlives engines.
  static void Connect() {
#if SIMGRID_VERSION < 33500
    sg4::Activity::on_completion_cb(
        [](const sg4::Activity& activity) { current->FlowEnded(activity); });
#else
    sg4::Comm::on_completion_cb(
        [](const sg4::Comm& comm) { current->FlowEnded(comm); });
#endif
  }

  template <typename ActivityType>
  void FlowEnded(const ActivityType& activity) {
    const auto slot = static_cast<int32_t>(
        reinterpret_cast<intptr_t>(activity.template get_data<void>()) - 1);
    // SimGrid still uses this activity; it is released at the next end.
    last_ended_ = std::move(flows_[slot].comm);
    free_slots_.push_back(slot);
    --num_flows_;
    listener_->FlowEnded(flows_[slot].flow, sg4::Engine::get_clock() + offset_);
  }

  // Makes room for all flows that this network may need.
  void Prepare() {
    prepared_ = true;
    link_slot_.assign(network_.size(), kNone);
    num_slots_ = 0;
    ends_.assign(pairs_.size(), {});
    size_t num_links = 0;
    for (const GpuPair& pair : pairs_) {
      for (int32_t link : pair.route.links) {
        num_links += link_slot_[link] == kNone;
        link_slot_[link] = 0;
      }
    }
    link_slot_.assign(network_.size(), kNone);
    if (num_links > links_.size() ||
        routes_.size() + pairs_.size() > weights_.size()) {
      // The first network may be the only one; a second one means that more
      // follow.
      const size_t room = engine_ == nullptr ? 1 : 2;
      Build(room * num_links, room * pairs_.size());
    }
  }

  void Build(size_t num_links, size_t num_routes) {
    last_ended_ = nullptr;
    flows_.clear();
    free_slots_.clear();
    routes_.clear();
    engine_.reset();  // only one can exist
    engine_ = MakeEngine();
    zone_ = MakeZone();
    num_links = std::max(num_links, kLeastLinks);
    num_routes = std::max(num_routes, kLeastRoutes);
    links_.clear();
    rates_.assign(num_links, 1.0);
    for (size_t i = 0; i < num_links; ++i) {
      links_.push_back(MakeLink(zone_, absl::StrCat("link", i), 1.0)
                           ->set_latency(0.0)
                           ->seal());
    }
    weights_.clear();
    for (size_t i = 0; i < num_routes; ++i) {
      weights_.push_back(MakeLink(zone_, absl::StrCat("weight", i), 1e27)
                             ->set_latency(1.0)
                             ->seal());
    }
    hosts_.clear();
    while (hosts_.size() * (hosts_.size() - 1) < num_routes || hosts_.empty()) {
      hosts_.push_back(MakeHost(zone_, absl::StrCat("end", hosts_.size())));
    }
    SetLatency(zone_,
               [](double, const sg4::Host*, const sg4::Host*,
                  const std::vector<sg4::Link*>&,
                  const std::unordered_set<sg4::NetZone*>&) { return 0.0; });
    zone_->seal();
  }

  int32_t SlotOf(int32_t link) {
    if (link_slot_[link] != kNone) return link_slot_[link];
    const int32_t slot = link_slot_[link] = num_slots_++;
    const double rate = kUnits * network_[link].bytes_per_second;
    if (rates_[slot] != rate) links_[slot]->set_bandwidth(rate);
    rates_[slot] = rate;
    return slot;
  }

  // Returns two hosts that no other route has: n hosts have n (n - 1) directed
  // pairs.
  Ends EndsOf(const scenarios::Route& way) {
    std::vector<int32_t> slots;
    for (int32_t link : way.links) slots.push_back(SlotOf(link));
    const auto [at, is_new] =
        routes_.try_emplace(slots, static_cast<int32_t>(routes_.size()));
    const int32_t others = static_cast<int32_t>(hosts_.size()) - 1;
    const int32_t from = at->second / others, other = at->second % others;
    const int32_t to = other < from ? other : other + 1;
    const Ends ends = {hosts_[from], hosts_[to]};
    if (is_new) {
      std::vector<sg4::LinkInRoute> route;
      route.emplace_back(weights_[at->second]);
      for (int32_t slot : slots) route.emplace_back(links_[slot]);
      zone_->add_bypass_route(ends.from->get_netpoint(),
                              ends.to->get_netpoint(), nullptr, nullptr, route);
    }
    return ends;
  }

  static constexpr size_t kLeastLinks = 128, kLeastRoutes = 256;
  // SimGrid counts whole bytes; the rest of a flow may have fractions.
  static constexpr double kUnits = 1 << 20;
  static constexpr int32_t kNone = -1;
  static inline Impl* current = nullptr;

  std::unique_ptr<sg4::Engine> engine_;
  sg4::NetZone* zone_ = nullptr;
  std::vector<sg4::Link*> links_, weights_;
  std::vector<double> rates_;  // [index into links_], in units
  std::vector<sg4::Host*> hosts_;
  absl::flat_hash_map<std::vector<int32_t>, int32_t> routes_;  // by slots

  std::span<const scenarios::Link> network_;
  std::span<const GpuPair> pairs_;
  bool prepared_ = false;
  std::vector<int32_t> link_slot_;  // [link], into links_
  int32_t num_slots_ = 0;
  std::vector<Ends> ends_;  // [pair]

  Listener* listener_ = nullptr;
  double offset_ = 0;  // the caller's seconds - SimGrid's
  Timer* alarm_ = nullptr;
  double alarm_seconds_ = 0;
  std::vector<Flow> flows_;
  std::vector<int32_t> free_slots_;
  sg4::CommPtr last_ended_;
  int num_flows_ = 0;
};

Platform::Platform() : impl_(std::make_unique<Impl>()) {}
Platform::~Platform() = default;
void Platform::SetNetwork(std::span<const scenarios::Link> links,
                          std::span<const GpuPair> pairs) {
  impl_->SetNetwork(links, pairs);
}
void Platform::StartFlow(int32_t pair, double bytes, int32_t flow,
                         double seconds) {
  impl_->StartFlow(pair, bytes, flow, seconds);
}
void Platform::SetAlarm(double seconds) { impl_->SetAlarm(seconds); }
void Platform::StopAlarm() { impl_->StopAlarm(); }
void Platform::Run(Listener* listener) { impl_->Run(listener); }
int Platform::num_flows() const { return impl_->num_flows(); }

}  // namespace weir::sim
