//! Neutron's router as the model's router, and routes as they are written.
//!
//! The wire form keeps each route's own text, so that a route which we cannot read is still written back unchanged.

use reveille_core::model::id::RouterId;
use reveille_core::model::network::{Route, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::port::network;

/// The attributes that are asked for, and no others.
pub(crate) const FIELDS: [&str; 3] = ["id", "routes", "revision_number"];

/// One router.
#[derive(Deserialize)]
pub(crate) struct WireRouter {
    pub(crate) id: String,
    /// Only asked for where people are to recognise it.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) routes: Vec<WireRoute>,
    #[serde(default)]
    pub(crate) revision_number: u64,
}

/// One extra route.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct WireRoute {
    destination: String,
    nexthop: String,
}

impl From<&Route> for WireRoute {
    fn from(route: &Route) -> Self {
        Self { destination: route.destination.to_string(), nexthop: route.next_hop.to_string() }
    }
}

impl WireRoute {
    /// The route, where its texts are a network and an address.
    pub(crate) fn route(&self) -> Option<Route> {
        Some(Route { destination: network(&self.destination)?, next_hop: self.nexthop.parse().ok()? })
    }
}

impl WireRouter {
    /// Turns it into the model's words; `limit` comes from elsewhere.
    pub(crate) fn into_router(self, limit: Option<u32>) -> Router {
        let routes = self.routes.iter().filter_map(WireRoute::route).collect();
        Router { id: RouterId::from(self.id.as_str()), routes, limit }
    }
}

/// `{"router": {"routes": […]}}`.
pub(crate) fn write_routes(routes: &[WireRoute]) -> Value {
    json!({ "router": { "routes": routes } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_next_hops_are_two_routes_and_invalid_route_is_dropped() {
        let json = r#"{"id": "r", "revision_number": 3, "routes": [
            {"destination": "198.19.1.0/24", "nexthop": "10.0.0.5"},
            {"destination": "198.19.1.0/24", "nexthop": "10.0.0.6"},
            {"destination": "somewhere", "nexthop": "10.0.0.6"}]}"#;
        let wire: WireRouter = serde_json::from_str(json).unwrap();
        let text = serde_json::to_string(&wire.routes[2]).unwrap();
        assert_eq!(text, r#"{"destination":"somewhere","nexthop":"10.0.0.6"}"#);
        let router = wire.into_router(Some(30));
        let shown: Vec<String> = router.routes.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["198.19.1.0/24 via 10.0.0.5", "198.19.1.0/24 via 10.0.0.6"]);
    }
}
