//! stub
#[derive(Clone, Debug, Default)]
pub struct World;
